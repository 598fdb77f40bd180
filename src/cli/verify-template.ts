import { loadTokenModel, type TokenModel } from "../inference/tokens/token-model.ts";
import { type Verification, verifyCase } from "../inference/tokens/verify.ts";
import { VERIFY_CASES } from "../inference/tokens/verify-cases.ts";
import { print } from "../lib/print.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra, UsageError } from "./flags.ts";
import { formatTable } from "./table.ts";

export const verifyTemplateCommand: Command = {
  name: "verify-template",
  summary: "compare the token ids of a growing conversation with the model's whole chat template",
  help: `Usage: rolloutd verify-template MODEL_DIR [--template NAME] [--json]

Runs a table of conversations through the incremental way, which keeps ids as they were sampled, and
through the whole chat template of a local Hugging Face model folder (tokenizer.json,
tokenizer_config.json, chat_template.jinja), and prints where and why they differ:

  equal    every prompt is what the template gives
  forked   so it is, in a new segment where the template rewrote the history
  kept     the template shows an earlier turn otherwise than it was; the engine's ids are kept
  refused  the template does not take such a conversation
  differs  neither equal nor explained: don't train with this template, and report it

Exit code 1 when a conversation differs.

  --template NAME  of a folder with several templates
  --json           one JSON object per conversation
`,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, {
      template: { type: "string" },
      json: { type: "boolean" },
    });
    refuseExtra(positionals, 1);
    const [folder] = positionals;
    if (folder === undefined) throw new UsageError("name a model folder");
    const { template } = values;
    const model = await loadTokenModel(folder, template === undefined ? {} : { template });
    const found = VERIFY_CASES.map((given) => verifyCase(model, given));
    if (values.json) for (const one of found) print(`${JSON.stringify(one)}\n`);
    else print(`${summary(model)}\n${report(found)}`);
    return found.some(({ verdict }) => verdict === "differs") ? EXIT.failed : EXIT.done;
  },
};

function summary(model: TokenModel): string {
  const { endOfTurn, form } = model.shape([], {});
  const end = form.lastEnd?.sampled ?? endOfTurn;
  const ends = end === null ? "the next one's opener" : JSON.stringify(end);
  return `Tool calls are read as ${model.dialect}; a turn ends with ${ends}.\n`;
}

function report(found: Verification[]): string {
  const rows = found.map((one) => [one.verdict, one.case, String(one.calls)]);
  const reasons = found.flatMap((one) =>
    one.detail === null ? [] : [`  ${one.case}: ${one.detail}`],
  );
  const table = formatTable(["verdict", "conversation", "calls"], rows);
  return reasons.length === 0 ? table : `${table}\nWhy:\n${reasons.join("\n")}\n`;
}

import { loadTokenModel, PROBE_TOOLS, type TokenModel } from "../inference/tokens/token-model.ts";
import { type Verification, verifyCase } from "../inference/tokens/verify.ts";
import { VERIFY_CASES } from "../inference/tokens/verify-cases.ts";
import { drawCase } from "../inference/tokens/verify-draw.ts";
import { print } from "../lib/print.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra, UsageError, wholeNumber } from "./flags.ts";
import { formatTable } from "./table.ts";

const DRAWN = 40;

export const verifyTemplateCommand: Command = {
  name: "verify-template",
  summary: "compare the token ids of growing conversations with the model's whole chat template",
  help: `Usage: rolloutd verify-template MODEL_DIR [--template NAME] [--conversations N] [--seed N] [--json]

Plays a table of conversations, and conversations that are drawn, as a rollout does, which keeps ids as they were
sampled. At each turn it compares the prompt with what the whole chat template of a local Hugging Face model
folder (tokenizer.json, tokenizer_config.json, chat_template.jinja) gives for all messages, and prints where and
why they differ:

  equal    every prompt is what the template gives
  forked   so it is, in a new segment where the template rewrote the history
  sampled  so it is, but for turns of the model's, which stay as it sampled them
  refused  the template does not take such a conversation
  differs  anything else: don't train with this template, and report it

Exit code 1 when a conversation differs, or when the template shows no tool calls.

  --template NAME    of a folder with several templates
  --conversations N  that are drawn (default ${DRAWN})
  --seed N           the first of their seeds (default 1)
  --json             one JSON object per conversation
`,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, {
      template: { type: "string" },
      conversations: { type: "string" },
      seed: { type: "string" },
      json: { type: "boolean" },
    });
    refuseExtra(positionals, 1);
    const [folder] = positionals;
    if (folder === undefined) throw new UsageError("name a model folder");
    const { template } = values;
    const count = wholeNumber("conversations", values.conversations ?? String(DRAWN));
    const first = wholeNumber("seed", values.seed ?? "1");
    const model = await loadTokenModel(folder, template === undefined ? {} : { template });
    const showsCalls = model.shape(PROBE_TOOLS, {}).shownCall !== null;
    const drawn = Array.from({ length: count }, (_, at) => drawCase(first + at, showsCalls));
    const given = [
      ...VERIFY_CASES.filter(({ tools }) => showsCalls || tools.length === 0),
      ...drawn,
    ];
    const found = given.map((one) => verifyCase(model, one));
    if (values.json) for (const one of found) print(`${JSON.stringify(one)}\n`);
    else print(`${summary(model)}\n${report(found)}`);
    const differs = found.some(({ verdict }) => verdict === "differs");
    return differs || !showsCalls ? EXIT.failed : EXIT.done;
  },
};

function summary(model: TokenModel): string {
  const { endOfTurn, form, shownCall, notKept } = model.shape(PROBE_TOOLS, {});
  const end = form.lastEnd?.sampled ?? endOfTurn;
  const ends = end === null ? "the next one's opener" : JSON.stringify(end);
  const calls =
    shownCall === null
      ? "The template shows no tool calls, so that rollouts with tools are refused"
      : `Tool calls are read as ${model.dialect}`;
  const notes = model.readBackNotes.map((note) => `Its calls do not say everything: ${note}.\n`);
  const kept = notKept === null ? "" : `History can't be kept: ${notKept}.\n`;
  return `${calls}; a turn ends with ${ends}.\n${notes.join("")}${kept}`;
}

function report(found: Verification[]): string {
  const rows = found.map((one) => [one.verdict, one.case, String(one.calls)]);
  const reasons = found.flatMap((one) =>
    one.detail === null ? [] : [`  ${one.case}: ${one.detail}`],
  );
  const table = formatTable(["verdict", "conversation", "calls"], rows);
  return reasons.length === 0 ? table : `${table}\nWhy:\n${reasons.join("\n")}\n`;
}

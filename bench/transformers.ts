import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../src/errors.ts";
import type { ToolSchema } from "../src/inference/engine.ts";
import { toTemplateMessages } from "../src/inference/tokens/template-message.ts";
import type { TokenModel } from "../src/inference/tokens/token-model.ts";
import { VERIFY_CASES } from "../src/inference/tokens/verify-cases.ts";
import { type Family, folderOf, modelOf } from "../test/inference/tokens/models.ts";
import { randomOf } from "../test/inference/tokens/simulated-engine.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { print, round } from "./line.ts";

/**
 * What each model's `config.json` says it is. From it transformers 5 knows which folders name a tokenizer class that
 * is not theirs, as DeepSeek's do; the packages leave it out.
 */
const MODEL_TYPES = {
  qwen3: "qwen3",
  mistral_nemo: "mistral",
  deepseek_v3: "deepseek_v3",
} as const;
const FAMILIES = Object.keys(MODEL_TYPES) as Family[];
const TEXTS = 500;
const PIECES = [
  ..."abc XYZ 0123456789 \n\t .,;:!?(){}[]<>=+-*/_'\"\\|@#$%^&~` ä é ß 日本 語 🙂 👩‍👩‍👧 \u200b \u00a0 e\u0301 \ufffd".split(
    " ",
  ),
  ..." the,def,return,\n\n,    ,don't,<|im_end|>,</s>,[INST],<think>,import,naïve,1234567".split(
    ",",
  ),
];

type Case = { messages?: unknown; tools?: ToolSchema[]; variables?: object; text?: string };
type Made = { text?: string; ids?: number[]; refused?: string };

/**
 * Whether our template rendering and tokenising agree with Python's transformers: on the prompts of all
 * conversations of `verify-template`, and on random text. It needs a Python with transformers and jinja2,
 * named by ROLLOUTD_TRANSFORMERS_PYTHON or found as `python3`, and says so where there is none.
 */
export async function transformers(): Promise<void> {
  const python = process.env.ROLLOUTD_TRANSFORMERS_PYTHON ?? "python3";
  const probe = Bun.spawnSync([python, "-c", "import transformers, jinja2"], { stderr: "ignore" });
  if (!probe.success) {
    const mend = "pip install transformers jinja2, and name its Python";
    console.error(`transformers: ${python} has none; ${mend} in ROLLOUTD_TRANSFORMERS_PYTHON`);
    return;
  }
  for (const family of FAMILIES) {
    const model = await modelOf(family);
    const cases = [...prompts(model), ...texts()];
    using folder = wholeFolder(family);
    const theirs = await inPython(python, folder.path, cases);
    report(family, "prompts", model, cases, theirs);
    report(family, "random texts", model, cases, theirs);
  }
}

/** The prompt of each call of each conversation. */
function prompts(model: TokenModel): Case[] {
  return VERIFY_CASES.flatMap(({ messages, tools, variables }) => {
    const { form, shownCall } = model.shape(tools, variables);
    const ends = messages.flatMap(({ role }, at) => (role === "assistant" ? [at] : []));
    const shown = ends.map((end) => messages.slice(0, end));
    const usable = shown.filter(
      (part) => shownCall !== null || !part.some(({ role }) => role === "tool"),
    );
    return usable.map((part) => ({ messages: toTemplateMessages(part, form), tools, variables }));
  });
}

function texts(): Case[] {
  const random = randomOf(11);
  const pick = () => PIECES[Math.floor(random() * PIECES.length)] ?? "";
  return Array.from({ length: TEXTS }, () => {
    return { text: Array.from({ length: Math.floor(random() * 60) + 1 }, pick).join("") };
  });
}

function wholeFolder(family: Family) {
  const dir = tempDir();
  for (const file of ["tokenizer.json", "tokenizer_config.json"]) {
    symlinkSync(join(folderOf(family), file), dir.file(file));
  }
  writeFileSync(dir.file("config.json"), JSON.stringify({ model_type: MODEL_TYPES[family] }));
  return dir;
}

async function inPython(python: string, folder: string, cases: Case[]): Promise<Made[]> {
  const script = join(import.meta.dir, "apply-template.py");
  const input = Buffer.from(cases.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const child = Bun.spawn([python, script, folder], { stdin: input, stderr: "ignore" });
  const lines = (await new Response(child.stdout).text()).trim().split("\n");
  return lines.map((line) => JSON.parse(line));
}

function ours(model: TokenModel, { text, messages, tools = [], variables = {} }: Case): Made {
  try {
    const shown = text ?? rendered(model, messages, tools, variables);
    return { text: shown, ids: model.tokenizer.encode(shown) };
  } catch (error) {
    if (error instanceof ServiceError) return { refused: error.message };
    throw error;
  }
}

function rendered(model: TokenModel, messages: unknown, tools: ToolSchema[], variables: object) {
  const options = { addGenerationPrompt: true, variables: { ...variables } };
  return model.template.render(messages as never, tools, options);
}

function report(
  family: Family,
  kind: "prompts" | "random texts",
  model: TokenModel,
  cases: Case[],
  theirs: Made[],
): void {
  const chosen = [...cases.entries()].filter(([, one]) => "text" in one === (kind !== "prompts"));
  const wrong = chosen.filter(([index, one]) => {
    const [mine, their] = [ours(model, one), theirs[index]];
    // Our Jinja is more lenient; what it then renders no engine of theirs would have.
    if (their?.refused !== undefined) return false;
    return mine.text !== their?.text || !Bun.deepEquals(mine.ids, their?.ids);
  });
  const [first] = wrong;
  if (first) {
    const [index, one] = first;
    console.error(`${family}: differs at ${JSON.stringify(one).slice(0, 300)}`);
    console.error(`ours:   ${JSON.stringify(ours(model, one)).slice(0, 1500)}`);
    console.error(`theirs: ${JSON.stringify(theirs[index]).slice(0, 1500)}`);
  }
  const refused = chosen.filter(([index]) => theirs[index]?.refused !== undefined).length;
  const equal = round((chosen.length - wrong.length) / chosen.length);
  print({
    bench: "transformers",
    case: `${family}, ${kind} with the same text and ids; ${refused} refused by theirs`,
    ...{ n: chosen.length, p50: equal, p99: equal, unit: "share" },
    ...{ target: "all", met: wrong.length === 0 },
  });
}

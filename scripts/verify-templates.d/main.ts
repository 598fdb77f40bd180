import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServiceError } from "../../src/errors.ts";
import { loadTokenModel, type TokenModel } from "../../src/inference/tokens/token-model.ts";
import { judge, type PlayedCall, playCase } from "../../src/inference/tokens/verify.ts";
import type { VerifyCase } from "../../src/inference/tokens/verify-cases.ts";
import { drawCase } from "../../src/inference/tokens/verify-draw.ts";
import { Reference } from "./reference.ts";
import { type Row, table } from "./table.ts";
import { type FoundTemplate, makeFolder, templatesBelow } from "./templates.ts";

const [packages, npm, python, count = "60", first = "1", only = ""] = process.argv.slice(2);
if (!packages || !npm || !python)
  throw new Error("usage: main.ts PACKAGES NPM PYTHON [COUNT [SEED [NAME]]]");
process.env.TZ = "UTC";
const reference = new Reference(python);
const dir = mkdtempSync(join(tmpdir(), "rolloutd-templates-"));
const rows: Row[] = [];
try {
  for (const found of templatesBelow(packages)) {
    if (only && !found.name.includes(only)) continue;
    const row = await tried(found);
    rows.push(row);
    const { name, refused, conversations, prompts, equal, sampled, forked, silent, loud } = row;
    console.error(
      name,
      refused ??
        JSON.stringify({
          conversations,
          prompts,
          equal,
          sampled,
          forked,
          t: row.refusedByTemplate,
          calls: row.showsCalls,
          silent: silent.length,
          loud: loud.length,
        }),
    );
    for (const [why, times] of [...row.forks].slice(0, 3)) console.error(`      ${times} ${why}`);
    for (const line of [...silent.slice(0, 2), ...loud.slice(0, 2)]) console.error(`    ${line}`);
  }
} finally {
  reference.end();
  rmSync(dir, { recursive: true, force: true });
}
const sum = (of: (row: Row) => number) => rows.reduce((total, row) => total + of(row), 0);
const silent = sum((row) => row.silent.length);
const loud = sum((row) => row.loud.length);
console.log(table(rows));
console.error(
  `${rows.length} templates, ${sum((row) => row.conversations)} conversations, ${sum((row) => row.prompts)} prompts: ${silent} silent differences, ${loud} refusals in the middle`,
);
process.exitCode = silent + loud > 0 ? 1 : 0;

async function tried(found: FoundTemplate): Promise<Row> {
  const { name, text } = found;
  const folder = makeFolder(dir, npm as string, found);
  const row: Row = {
    ...{
      name,
      standIn: folder.standIn,
      refused: null,
      showsCalls: true,
      conversations: 0,
      prompts: 0,
      equal: 0,
    },
    ...{ sampled: 0, forked: 0, refusedByTemplate: 0, forks: new Map(), silent: [], loud: [] },
  };
  const { special, tokenizer, added } = folder;
  const opened = await reference.open({ open: name, template: text, special, tokenizer, added });
  if ("refused" in opened) row.refused = `Python: ${opened.refused}`;
  let model: TokenModel;
  try {
    model = await loadTokenModel(folder.path);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    row.refused ??= error.message;
    return row;
  }
  for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
    await play(row, model, seed);
  }
  return row;
}

/** Null where the template takes no conversation of that kind at all. */
function shapeOf(model: TokenModel, { tools, variables }: VerifyCase) {
  try {
    return model.shape(tools, variables);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "template_refused") return null;
    throw error;
  }
}

async function play(row: Row, model: TokenModel, seed: number): Promise<void> {
  const drawn = drawCase(seed);
  const showsCalls = shapeOf(model, drawn)?.shownCall !== null;
  row.showsCalls &&= showsCalls;
  const given = showsCalls ? drawn : drawCase(seed, false);
  row.conversations += 1;
  const shape = shapeOf(model, given);
  if (!shape) {
    row.refusedByTemplate += 1;
    return;
  }
  const { form } = shape;
  const calls: PlayedCall[] = [];
  let refusal: string | null = null;
  try {
    for (const call of playCase(model, given)) calls.push(call);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    refusal = error.message;
  }
  for (const call of calls) {
    const whole = await reference.render(row.name, call.messages, form, given);
    row.prompts += 1;
    if ("refused" in whole) {
      row.silent.push(
        `seed ${seed}, call ${calls.indexOf(call)}: Python refuses: ${whole.refused}`,
      );
      return;
    }
    const judged = judge(model, call, whole);
    if (judged === null) row.equal += 1;
    else if (judged.startsWith("differs ")) {
      row.silent.push(`seed ${seed}, call ${calls.indexOf(call)}: ${judged}`);
      return;
    } else row.sampled += 1;
    if (call.fork && call.spans.length === 1) {
      row.forked += 1;
      row.forks.set(call.fork.detail, (row.forks.get(call.fork.detail) ?? 0) + 1);
    }
  }
  if (refusal === null) return;
  // Only where Python refuses some prompt of the conversation too.
  const at = calls.length;
  const ends = given.messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
  for (const end of [...ends.slice(at), given.messages.length]) {
    const whole = await reference.render(row.name, given.messages.slice(0, end), form, given);
    if ("refused" in whole) {
      row.refusedByTemplate += 1;
      return;
    }
  }
  row.loud.push(`seed ${seed}, call ${at}: ${refusal}`);
}

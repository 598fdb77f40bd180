/**
 * What becomes of NeMo Gym's own example rows, as a table: the check of ours or the resources server that scores them, or
 * why they are refused; and the published rollouts, replayed, with the rewards that they had:
 *
 *     bun scripts/try-trainers.d/gym_rows.ts FOLDER [--gym-servers NAME=URL,*=URL] [--write FILE]
 *
 * It fails where a published reward above 0 becomes a 0 without a word.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Glob } from "bun";
import { instanceOf } from "../../src/compat/nemo-gym/instance.ts";
import { ServiceError } from "../../src/errors.ts";
import { taskKindOf } from "../../src/tasks/registry.ts";
import { setup } from "../../test/sandbox/setup.ts";
import { replayed, settingsFor } from "./gym_replay.ts";
import { type FileResult, markdown, summary } from "./gym_table.ts";

export type Row = Record<string, unknown>;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "gym-servers": { type: "string" }, write: { type: "string" } },
});
const [folder = "."] = positionals;
const servers = Object.fromEntries(
  (values["gym-servers"] ?? "")
    .split(",")
    .filter((pair) => pair.includes("="))
    .map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
);

const PARTS = "{resources_servers,environments,responses_api_agents,benchmarks}";
const files = [...new Glob(`${PARTS}/**/data/**/*example.jsonl`).scanSync(folder)].sort();
if (files.length === 0) throw new Error(`${folder} has no example rows of NeMo Gym`);

await using sandboxes = await setup("bubblewrap");
const results: FileResult[] = [];
for (const file of files) results.push(await resultOf(file));

const table = markdown(results);
if (values.write === undefined) console.log(table);
else writeFileSync(values.write, withTable(readFileSync(values.write, "utf8"), table));
console.log(`NeMo Gym ${summary(results)}`);
const silent = results.flatMap(({ replays }) => replays).filter(({ silent }) => silent);
if (silent.length > 0) throw new Error(`${silent.length} published rewards became 0 silently`);
process.exit(0);

async function resultOf(file: string): Promise<FileResult> {
  const rows = linesOf(`${folder}/${file}`);
  const decisions = rows.map(decisionOf);
  const rollouts = `${folder}/${file}`.replace(/\.jsonl$/, "_rollouts.jsonl");
  const isTaken = decisions.some((decision) => !decision.startsWith("refused"));
  const published = isTaken && existsSync(rollouts) ? linesOf(rollouts) : [];
  const replays = [];
  for (const rollout of published) {
    const replay = await replayed(rollout, rows, servers, () => sandboxes.open());
    if (replay !== null) replays.push(replay);
  }
  return { file, rows: rows.length, decisions, replays };
}

function decisionOf(row: Row): string {
  try {
    const instance = instanceOf(row, servers);
    const kind = taskKindOf(instance.data_source);
    kind.sandboxes(kind.parse(instance), settingsFor(servers));
    const { verifier, data_source: source } = instance;
    if (source === "nemo_gym") {
      const { agent = "simple" } = verifier as { agent?: string };
      return `its server, as the ${agent} agent`;
    }
    return source === "reasoning" ? `check ${verifier}` : `kind ${source}`;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return `refused: ${reasonOf(error)}`;
  }
}

/** Without what differs from row to row. */
function reasonOf({ message }: ServiceError): string {
  if (message.startsWith("the row's tools")) return "its tools belong to its resources server";
  if (message.startsWith("the row's fields")) return "its fields do not say how it is scored";
  if (message.endsWith("are scored by their resources server"))
    return "it names a resources server of its own";
  if (message.includes("there is no instruction"))
    return "it has an instruction that no check knows";
  return message.replace(/^rows of "[^"]*" are driven by/, "driven by").replace(/\[\d+\]/g, "[…]");
}

function linesOf(path: string): Row[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
}

function withTable(text: string, made: string): string {
  const [begin, end] = ["<!-- rows -->", "<!-- /rows -->"];
  const from = text.indexOf(begin) + begin.length;
  return `${text.slice(0, from)}\n\n${made}\n\n${text.slice(text.indexOf(end))}`;
}

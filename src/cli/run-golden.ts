import { terminalText } from "../lib/terminal-text.ts";
import { GOLDEN } from "../tasks/golden.ts";
import { type EndedRollout, isGolden } from "./run-collect.ts";

/** How many are told whole; the results have them all. */
const MAX_TOLD = 20;
/** Of a verifier's log. */
const MAX_LOG_LINES = 15;
const MAX_LOG_CHARS = 2000;

type Ended = Omit<EndedRollout, "made_with">;

const WANTED = {
  solution: { what: "its own solution", reward: 1 },
  nothing: { what: "no work at all", reward: 0 },
  solution_by_agent: { what: "its own solution by way of the agent's sandbox", reward: 1 },
};

/** Each row whose solution did not earn 1, or that no work earned something for: the verdict, and what it rests on. */
export function formatGolden(results: Ended[]): string {
  const unfit = results.filter((result) => result.reward !== null && !isGolden(result));
  if (unfit.length === 0) return "";
  const lines = unfit.slice(0, MAX_TOLD).flatMap(told);
  const rest = unfit.length - MAX_TOLD;
  if (rest > 0) lines.push(`  and ${rest} more`);
  return `\nNot as they should be:\n${lines.join("\n")}\n`;
}

function told({ id, row, sample, instance, reward, verdict }: Ended): string[] {
  const { what, reward: wanted } = WANTED[GOLDEN[sample] ?? "solution"];
  const { instance_id } = instance;
  const name = typeof instance_id === "string" ? ` ${plain(instance_id)}` : "";
  const head = `  row ${row}${name}: ${what} earned ${reward}, not ${wanted} (${id})`;
  if (!verdict) return [head];
  const log = logOf(verdict.details);
  const reason = `      ${verdict.rule}: ${plain(verdict.reason)}`;
  return [head, reason, ...log.map((line) => `      | ${line}`)];
}

/** The end of the log that a verdict rests on. */
function logOf(details: Record<string, unknown> | undefined): string[] {
  const log = details?.log;
  if (typeof log !== "string") return [];
  const shown = terminalText(log).trimEnd().slice(-MAX_LOG_CHARS);
  return shown === "" ? [] : shown.split("\n").slice(-MAX_LOG_LINES);
}

/** One line that can't move the cursor. */
function plain(text: string): string {
  return terminalText(text).replace(/\s+/g, " ").trim().slice(0, MAX_LOG_CHARS);
}

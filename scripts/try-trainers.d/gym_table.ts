import type { Replay } from "./gym_replay.ts";

export type FileResult = { file: string; rows: number; decisions: string[]; replays: Replay[] };

/** A table with a line per file, behind one with the number of files by what becomes of their rows. */
export function markdown(results: readonly FileResult[]): string {
  const counts = Map.groupBy(results.map(decisionOf), (decision) => decision);
  const sorted = [...counts].sort(([, a], [, b]) => b.length - a.length);
  return [
    "| What becomes of the rows | Files |",
    "|---|---|",
    ...sorted.map(([decision, all]) => `| ${decision} | ${all.length} |`),
    "",
    "| File | Rows | Scored by, or refused | Published rollouts |",
    "|---|---|---|---|",
    ...results.map((result) => {
      const name = result.file.replace("/data/example.jsonl", "");
      return `| \`${name}\` | ${result.rows} | ${decisionOf(result)} | ${replaysOf(result)} |`;
    }),
  ].join("\n");
}

export function summary(results: readonly FileResult[]): string {
  const taken = results.filter((result) => !decisionOf(result).startsWith("refused"));
  const replays = results.flatMap(({ replays: all }) => all);
  const same = replays.filter(({ published, reward }) => published === reward);
  const silent = replays.filter((replay) => replay.silent);
  return [
    `${results.length} example files`,
    `${taken.length} taken`,
    `${same.length} of ${replays.length} published rewards`,
    `${silent.length} silent zeros`,
  ].join(", ");
}

function decisionOf({ decisions }: FileResult): string {
  const cell = [...new Set(decisions)].sort().join("; ");
  return cell.replaceAll("|", "\\|");
}

function replaysOf({ replays, decisions }: FileResult): string {
  if (decisions.every((decision) => decision.startsWith("refused"))) return "";
  if (replays.length === 0) return "none";
  const same = replays.filter(({ published, reward }) => published === reward).length;
  const others = replays
    .filter(({ published, reward }) => published !== reward)
    .map(({ published, reward, why }) => `${published}, here ${reward ?? "no reward"}: ${why}`);
  return [`${same} of ${replays.length} equal`, ...others].join("; ").replaceAll("|", "\\|");
}

import { terminalText } from "../lib/terminal-text.ts";
import type { RolloutView } from "../protocol/view.ts";

/** How many rollouts of one failure are named; the results have them all. */
const NAMED = 3;
const MAX_REASONS = 10;

/** Why rollouts have no reward, and what to do about it: the same reason once, the most frequent first. */
export function formatFailures(results: Pick<RolloutView, "id" | "error">[]): string {
  const failed = results.filter(({ error }) => error);
  if (failed.length === 0) return "";
  const reasons = [...Map.groupBy(failed, reasonOf).values()].sort((a, b) => b.length - a.length);
  const lines = reasons.slice(0, MAX_REASONS).flatMap((group) => {
    const [first] = group;
    if (!first?.error) return [];
    const { code, message, mend, stage } = first.error;
    const ids = group.slice(0, NAMED).map(({ id }) => id);
    const more = group.length > NAMED ? ", …" : "";
    return [
      `  ${group.length} × ${code} in ${stage}: ${plain(message)}`,
      ...(mend ? [`      ${plain(mend)}`] : []),
      `      ${ids.join(", ")}${more}`,
    ];
  });
  const rest = reasons.length - MAX_REASONS;
  if (rest > 0) lines.push(`  and ${rest} other reasons`);
  return `\nWhy:\n${lines.join("\n")}\n`;
}

/** Times and ports differ where the reason is the same. */
function reasonOf({ error }: Pick<RolloutView, "error">): string {
  return `${error?.stage} ${error?.code}: ${error?.message}`.replace(/\d+/g, "0");
}

/** An engine's words must not move the cursor. */
function plain(text: string): string {
  return terminalText(text).trim().replaceAll("\n", "\n      ");
}

import { terminalText } from "../lib/terminal-text.ts";
import { GOLDEN } from "../tasks/golden.ts";
import { type EndedRollout, isGolden } from "./run-collect.ts";

const SHOWN = 10;

const NAMES = {
  solution: "the row's own solution",
  nothing: "no work at all",
  solution_by_agent: "the row's own solution by way of the agent's sandbox",
};

/** Which rows did not earn what `--golden` asks for, with the verdict and the end of the log. */
export function formatUnfit(results: EndedRollout[]): string {
  const unfit = results.filter((result) => !isGolden(result) && result.verdict !== null);
  const shown = unfit.slice(0, SHOWN).map(({ row, sample, reward, verdict }) => {
    const which = NAMES[GOLDEN[sample] ?? "solution"];
    const log = verdict?.details?.log_end;
    const end = typeof log === "string" ? `\n      ${plain(log)}` : "";
    return `  row ${row}, ${which}: ${reward}, ${verdict?.rule}: ${plain(verdict?.reason ?? "")}${end}\n`;
  });
  const rest = unfit.length - SHOWN;
  if (rest > 0) shown.push(`  and ${rest} more\n`);
  return shown.length === 0 ? "" : `\nNot as it has to be:\n${shown.join("")}`;
}

/** A log's words must not move the cursor. */
function plain(text: string): string {
  return terminalText(text).trim().replaceAll("\n", "\n      ");
}

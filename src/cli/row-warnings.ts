import { terminalText } from "../lib/terminal-text.ts";
import { harbor } from "../tasks/harbor/harbor.ts";
import type { PlacedRow } from "./rows.ts";

const SHOWN = 10;

/** What task folders say that nothing here reads, each saying once, with the first folder that has it. */
export function rowWarnings(rows: PlacedRow[]): string[] {
  const places = new Map<string, string[]>();
  for (const { row, place } of rows) {
    if (!harbor.dataSources.includes(row.data_source)) continue;
    for (const warning of warningsOf(row)) {
      const known = places.get(warning);
      if (known) known.push(place);
      else places.set(warning, [place]);
    }
  }
  const lines = [...places].map(([warning, [first = "", ...others]]) => {
    const more = others.length > 0 ? ` and ${others.length} more` : "";
    return terminalText(`${first}${more}: ${warning}`);
  });
  const rest = lines.length - SHOWN;
  return [...lines.slice(0, SHOWN), ...(rest > 0 ? [`and ${rest} more warnings`] : [])];
}

/** A row that is refused is told of by the service. */
function warningsOf(row: PlacedRow["row"]): string[] {
  try {
    return harbor.parse(row).warnings;
  } catch {
    return [];
  }
}

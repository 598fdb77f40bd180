import { printable } from "../lib/print.ts";

/** Rows as aligned columns; numbers to the right. */
export function formatTable(header: string[], given: string[][]): string {
  // As wide as they are printed, each in its own row.
  const rows = given.map((row) => row.map(inOneLine));
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const numeric = header.map((_, column) =>
    rows.every((row) => /^[-\d.]*$/.test(row[column] ?? "")),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return numeric[column] ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return `${[header, ...rows].map(line).join("\n")}\n`;
}

/** A cell with a line end in it would pass for a row of its own. */
function inOneLine(cell: string): string {
  return printable(cell).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

export function seconds(ms: number): string {
  return (ms / 1000).toFixed(ms < 10_000 ? 2 : 1);
}

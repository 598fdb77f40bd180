const FENCE = /^[ \t]*(```+|~~~+)/;

/**
 * The content of the last fenced block, or null where none is closed. A fence that is opened last and never
 * closed does not count: the text was cut in the middle of it.
 */
export function lastCodeBlock(text: string): string | null {
  let open: { fence: string; from: number } | null = null;
  let block: string | null = null;
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    const fence = line.match(FENCE)?.[1];
    if (fence === undefined) continue;
    if (open === null) open = { fence, from: index + 1 };
    else if (fence.startsWith(open.fence) && line.trim() === fence) {
      block = lines.slice(open.from, index).join("\n");
      open = null;
    }
  }
  return block;
}

type Row = { patch: string } & Record<string, unknown>;

/** A row with half of its solution's hunks, and one with the solution's lines exchanged. */
export function broken(row: Row): Row[] {
  return [
    { ...row, patch: half(row.patch) },
    { ...row, patch: exchanged(row.patch) },
  ];
}

/** Without every other hunk, the largest among those that go. */
function half(patch: string): string {
  const files = patch.split(/^(?=diff --git )/m);
  const hunks = files.flatMap((file) => file.split(/^(?=@@ )/m).slice(1));
  const bySize = hunks.toSorted((a, b) => added(b) - added(a));
  const gone = new Set(bySize.slice(0, Math.ceil(bySize.length / 2)));
  return files
    .map((file) => {
      const [head = "", ...own] = file.split(/^(?=@@ )/m);
      const kept = own.filter((hunk) => !gone.has(hunk));
      return kept.length === 0 ? "" : head + kept.join("");
    })
    .join("");
}

/** A patch that takes the solution's effect back where it is, and so does not fit the base. */
function exchanged(patch: string): string {
  const signs: Record<string, string> = { "+": "-", "-": "+" };
  return patch
    .replace(/^@@ -(\S+) \+(\S+) @@/gm, "@@ -$2 +$1 @@")
    .replace(/^(?!--- |\+\+\+ )[+-]/gm, (sign) => signs[sign] ?? sign);
}

function added(hunk: string): number {
  return hunk.split("\n").filter((line) => line.startsWith("+")).length;
}

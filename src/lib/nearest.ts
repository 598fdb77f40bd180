/** Of what there is the word that `typed` was probably meant to be; null where none is near. Case does not count. */
export function nearest(typed: string, words: Iterable<string>): string | null {
  let best: string | null = null;
  // A third of the letters may be wrong, but not so many that short words mean each other.
  let least = Math.min(3, Math.ceil(typed.length / 3)) + 1;
  for (const word of words) {
    const steps = distance(typed.toLowerCase(), word.toLowerCase());
    if (steps < least) [best, least] = [word, steps];
  }
  return best;
}

/** How many letters have to be added, removed, replaced or swapped with the next (restricted Damerau-Levenshtein). */
function distance(from: string, to: string): number {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const line = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      const swapped =
        row > 1 &&
        column > 1 &&
        from[row - 1] === to[column - 2] &&
        from[row - 2] === to[column - 1];
      line[column] = Math.min(
        (line[column - 1] as number) + 1,
        (last[column] as number) + 1,
        (last[column - 1] as number) + (same ? 0 : 1),
        swapped ? (before[column - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, last] = [last, line];
  }
  return last[to.length] as number;
}

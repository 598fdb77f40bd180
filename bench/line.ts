/** One answer of a bench: a JSON object on a line of its own. */
export type BenchLine = {
  bench: string;
  case: string;
  n: number;
  p50?: number;
  p99?: number;
  /** Of verdicts, or of problems. */
  precision?: number;
  recall?: number;
  share?: number;
  /** Where a target is of the mean. */
  mean?: number;
  unit: string;
  /** The floor or rival of the same run, and ours over theirs. */
  against?: string;
  ratio?: number;
  /** The target in words, and whether the figures meet it. */
  target?: string;
  met?: boolean;
};

export function print(line: BenchLine): void {
  console.log(JSON.stringify(line));
}

export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.floor(sorted.length * share));
  return round(sorted[index] ?? Number.NaN);
}

export function round(value: number): number {
  return Number(value.toPrecision(4));
}

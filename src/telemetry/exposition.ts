type Labels = Record<string, string>;
type Sample = { labels?: Labels; value: number };

/** Text for Prometheus, metric by metric. */
export class Exposition {
  readonly #lines: string[] = [];

  metric(name: string, type: "gauge" | "counter", help: string, samples: Sample[]): void {
    this.#head(name, type, help);
    for (const { labels, value } of samples) this.#lines.push(line(name, labels, value));
  }

  histogram(name: string, help: string, series: { labels: Labels; histogram: Histogram }[]): void {
    this.#head(name, "histogram", help);
    for (const { labels, histogram } of series) {
      for (const [bound, count] of histogram.cumulative()) {
        this.#lines.push(line(`${name}_bucket`, { ...labels, le: bound }, count));
      }
      this.#lines.push(line(`${name}_sum`, labels, histogram.sum));
      this.#lines.push(line(`${name}_count`, labels, histogram.count));
    }
  }

  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }

  #head(name: string, type: string, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }
}

/** Counts values in buckets of fixed bounds. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    const index = this.#bounds.findIndex((bound) => value <= bound);
    if (index !== -1) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.sum += value;
    this.count++;
  }

  cumulative(): [bound: string, count: number][] {
    let total = 0;
    const rows = this.#bounds.map((bound, index): [string, number] => {
      total += this.#counts[index] ?? 0;
      return [String(bound), total];
    });
    return [...rows, ["+Inf", this.count]];
  }
}

function line(name: string, labels: Labels = {}, value: number): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${quoted(text)}"`);
  return `${name}${pairs.length > 0 ? `{${pairs.join(",")}}` : ""} ${value}`;
}

function quoted(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

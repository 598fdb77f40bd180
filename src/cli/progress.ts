import { draw, printError } from "../lib/print.ts";
import type { StatusView } from "./api-client.ts";

const BAR_WIDTH = 30;
const PLAIN_EVERY_MS = 2_000;

/** One line on standard error: redrawn on a terminal, repeated now and then elsewhere. */
export class Progress {
  readonly #total: number;
  readonly #startMs = performance.now();
  readonly #live = process.stderr.isTTY === true;
  #lastPlainMs = 0;

  constructor(total: number) {
    this.#total = total;
  }

  show(done: number, meanReward: number | null, stages: StatusView["stages"]): void {
    const nowMs = performance.now();
    const due = nowMs - this.#lastPlainMs >= PLAIN_EVERY_MS || done === this.#total;
    if (!this.#live && !due) return;
    this.#lastPlainMs = nowMs;
    const filled = Math.round((done / this.#total) * BAR_WIDTH);
    const bar = "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled);
    const waiting = Object.values(stages).reduce((sum, { pending }) => sum + pending, 0);
    const active = [
      ...(waiting > 0 ? [`waiting ${waiting}`] : []),
      ...Object.entries(stages).map(([stage, { active: count }]) => `${stage} ${count}`),
    ].join(" · ");
    const reward = meanReward === null ? "" : ` · mean reward ${meanReward.toFixed(2)}`;
    const elapsed = ((nowMs - this.#startMs) / 1000).toFixed(0);
    const line = `${bar} ${done}/${this.#total} · ${active}${reward} · ${elapsed} s`;
    draw(process.stderr, this.#live ? `\r\x1b[2K${line}` : `${line}\n`);
  }

  end(): void {
    if (this.#live) printError("\n");
  }
}

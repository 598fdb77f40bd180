import type { Sample } from "./dapo-workload.ts";

/** Sequences that one simulated engine decodes at once; more wait for their turn. */
const WIDTH = 64;
/** A decoding step: a fixed part, and one for each sequence. Units: seconds. */
const STEP_S = 0.012;
const STEP_PER_SEQUENCE_S = 0.00006;
/** RUN slots per sequence of the engines, because a rollout whose tool runs needs no engine. */
const SLOTS_PER_SEQUENCE = 1.25;
/** Windows over which the use of the engines is looked at. */
const WINDOW_S = 30;

/** A rollout that is under way or waits for a slot. */
export type Rollout = {
  sample: Sample;
  /** Tokens that it has generated. */
  tokens: number;
  state: "queued" | "running" | "over";
};

type Sequence = { rollout: Rollout; endsAt: number; tokens: number };

class Engine {
  /** Tokens that a sequence which was there from the beginning would have. */
  progress = 0;
  readonly decoding: Sequence[] = [];
  readonly waiting: Omit<Sequence, "endsAt">[] = [];
  load = 0;

  get tokensPerSecond(): number {
    return 1 / (STEP_S + STEP_PER_SEQUENCE_S * this.decoding.length);
  }

  /** Seconds until the next sequence has its tokens. */
  get nextEnd(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { endsAt } of this.decoding) first = Math.min(first, endsAt);
    return Math.max(0, first - this.progress) / this.tokensPerSecond;
  }

  fill(): void {
    while (this.decoding.length < WIDTH) {
      const next = this.waiting.shift();
      if (!next) return;
      this.decoding.push({ ...next, endsAt: this.progress + next.tokens });
    }
  }
}

/**
 * RUN slots and engines in virtual time: every rollout is turns of generating and of a tool, and the engines
 * share themselves among the sequences that they decode. No randomness but the workload's.
 */
export class Cluster {
  nowS = 0;
  /** Since the measuring began. */
  generated = 0;
  startS = 0;
  /** Share of the engines' width in use, for each window. */
  use: number[] = [];
  readonly #engines: Engine[];
  readonly #slots: number;
  readonly #queue: Rollout[] = [];
  readonly #tools: { atS: number; rollout: Rollout; engine: Engine }[] = [];
  readonly #placed = new Map<Rollout, Engine>();
  #usedInWindow = 0;
  #windowEndS = WINDOW_S;

  constructor(backends: number) {
    this.#engines = Array.from({ length: backends }, () => new Engine());
    this.#slots = Math.floor(backends * WIDTH * SLOTS_PER_SEQUENCE);
  }

  get freeSlots(): number {
    return this.#slots - this.#placed.size - this.#queue.length;
  }

  startMeasuring(): void {
    this.startS = this.nowS;
    this.generated = 0;
    this.use = [];
  }

  submit(sample: Sample): Rollout {
    const rollout: Rollout = { sample, tokens: 0, state: "queued" };
    this.#queue.push(rollout);
    return rollout;
  }

  /** Ends a rollout; its tokens are what it had. */
  end(rollout: Rollout): void {
    if (rollout.state === "over") return;
    const engine = this.#placed.get(rollout);
    if (engine) {
      const at = engine.decoding.findIndex((sequence) => sequence.rollout === rollout);
      const [sequence] = at < 0 ? [] : engine.decoding.splice(at, 1);
      if (sequence) {
        const done = sequence.tokens - (sequence.endsAt - engine.progress);
        rollout.tokens += done;
        this.generated += done;
      }
      remove(engine.waiting, (waiting) => waiting.rollout === rollout);
      remove(this.#tools, (tool) => tool.rollout === rollout);
    } else remove(this.#queue, (queued) => queued === rollout);
    this.#release(rollout);
  }

  /** Runs until `isOver`; `onEnd` hears of each rollout that came to its end. */
  run(onEnd: (rollout: Rollout) => void, isOver: () => boolean): void {
    while (!isOver()) {
      this.#fillSlots();
      const toolS = Math.min(...this.#tools.map(({ atS }) => atS)) - this.nowS;
      const engineS = Math.min(...this.#engines.map((engine) => engine.nextEnd));
      const stepS = Math.min(toolS, engineS, this.#windowEndS - this.nowS);
      if (!Number.isFinite(Math.min(toolS, engineS))) throw new Error("nothing is left to do");
      this.#advance(stepS);
      for (const tool of this.#tools.filter(({ atS }) => atS <= this.nowS + 1e-9)) {
        remove(this.#tools, (candidate) => candidate === tool);
        this.#generate(tool.rollout, tool.engine);
      }
      for (const engine of this.#engines) {
        const ready = engine.decoding.filter(({ endsAt }) => endsAt <= engine.progress + 1e-6);
        for (const sequence of ready) {
          // One that ended may have had another one ended.
          if (!engine.decoding.includes(sequence)) continue;
          remove(engine.decoding, (candidate) => candidate === sequence);
          this.#turnEnded(sequence, engine, onEnd);
        }
      }
    }
  }

  #fillSlots(): void {
    while (this.#placed.size < this.#slots) {
      const rollout = this.#queue.shift();
      if (!rollout) break;
      const engine = this.#engines.reduce((best, other) => (other.load < best.load ? other : best));
      engine.load++;
      rollout.state = "running";
      this.#placed.set(rollout, engine);
      this.#generate(rollout, engine);
    }
    for (const engine of this.#engines) engine.fill();
  }

  #generate(rollout: Rollout, engine: Engine): void {
    const tokens = Math.min(rollout.sample.turnTokens, rollout.sample.tokens - rollout.tokens);
    engine.waiting.push({ rollout, tokens });
  }

  #turnEnded(sequence: Sequence, engine: Engine, onEnd: (rollout: Rollout) => void): void {
    const { rollout } = sequence;
    rollout.tokens += sequence.tokens;
    this.generated += sequence.tokens;
    if (rollout.tokens < rollout.sample.tokens - 1e-6) {
      this.#tools.push({ atS: this.nowS + rollout.sample.toolS, rollout, engine });
      return;
    }
    this.#release(rollout);
    onEnd(rollout);
  }

  #release(rollout: Rollout): void {
    const engine = this.#placed.get(rollout);
    if (engine) engine.load--;
    this.#placed.delete(rollout);
    rollout.state = "over";
  }

  #advance(seconds: number): void {
    this.nowS += seconds;
    let decoding = 0;
    for (const engine of this.#engines) {
      engine.progress += seconds * engine.tokensPerSecond;
      decoding += engine.decoding.length;
    }
    this.#usedInWindow += (decoding / (WIDTH * this.#engines.length)) * seconds;
    if (this.nowS < this.#windowEndS - 1e-9) return;
    this.use.push(this.#usedInWindow / WINDOW_S);
    this.#usedInWindow = 0;
    this.#windowEndS += WINDOW_S;
  }
}

function remove<T>(items: T[], isIt: (item: T) => boolean): void {
  const at = items.findIndex(isIt);
  if (at >= 0) items.splice(at, 1);
}

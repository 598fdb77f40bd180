import type { PolicyName } from "../../src/inference/balance/placement.ts";
import { percentile, print, round } from "../line.ts";
import { type ClusterOptions, lowerBoundMs, type Played, play } from "./cluster.ts";
import { overHttp } from "./over-http.ts";
import { rolloutsOf } from "./rollouts.ts";

/**
 * A 14B model on one H100: a step reads the weights (28 GB at 3.35 TB/s) and the keys and values of each
 * running context (20,000 tokens of 192 kB). Such steps gain little from more requests at once.
 */
const ENGINE = {
  stepMs: 8,
  stepMsPerRequest: 1.5,
  prefillTokensPerS: 15_000,
  kvTokens: 400_000,
  maxBatch: 64,
};

/**
 * Lognormal turns with p90/p50 = 4.2, cut at 50, as trainers cut agents' rollouts: half end within 12 turns,
 * one in ten reaches the cut. Eight of one instance are long together, because the instance is hard.
 */
const SKEW = { turns: 12, betweenInstances: 1, withinInstance: 0.5, samples: 8 };

const SEEDS = [0, 1, 2, 3, 4];
const BACKENDS = [2, 4, 8, 16];
const RIVALS: PolicyName[] = ["static", "round-robin", "min-heap", "consistent-hash"];
const SLOTS_PER_BACKEND = 16;
/** More would take minutes to play. 256 over 8 backends is the batch of ProRL's ablation: 32 instances, 8 each. */
const MAX_ROLLOUTS = 1_024;

type Case = Omit<ClusterOptions, "policy" | "rollouts" | "seed"> & { perBackend: number };

/** How long a batch of rollouts takes, against other ways to place them and against what is possible. */
export async function balance(): Promise<void> {
  for (const perBackend of [16, 32, 64, 256]) {
    for (const backends of BACKENDS) {
      if (perBackend * backends > MAX_ROLLOUTS) continue;
      batch({ ...base(backends), perBackend });
    }
  }
  thrash();
  lateJoiner();
  await overHttp();
}

const base = (backends: number) => {
  return { engine: ENGINE, backends, slots: SLOTS_PER_BACKEND * backends };
};

/** The same rollouts under `policy`, once for each seed. */
function played(given: Case, policy: PolicyName, seeds = SEEDS) {
  return seeds.map((seed) => {
    const { perBackend, ...rest } = given;
    const options = {
      ...rest,
      policy,
      seed,
      rollouts: rolloutsOf(perBackend * given.backends, SKEW, seed),
    };
    return { ...play(options), boundMs: lowerBoundMs(options) };
  });
}

function batch(given: Case): void {
  const seeds = given.perBackend * given.backends > 512 ? SEEDS.slice(0, 3) : SEEDS;
  const { backends, perBackend } = given;
  const what = `${perBackend} rollouts a backend, ${backends} backends`;
  const ours = played(given, "least-work", seeds);
  const ofBound = ours.map(({ makespanMs, boundMs }) => makespanMs / boundMs);
  line(`${what}: least-work`, ofBound, {
    unit: "times the lower bound (the longest rollout, or all work over all backends)",
    target: "within 10 % of the bound",
    met: mean(ofBound) <= 1.1,
  });
  const hits = ours.map(({ hitShare, perfectShare }) => hitShare / perfectShare);
  line(`${what}: prefix cache`, hits, {
    unit: "of the hits of perfect affinity",
    target: "at least 0.95",
    met: Math.min(...hits) >= 0.95,
  });
  for (const rival of RIVALS) {
    const theirs = played(given, rival, seeds);
    const speedUps = theirs.map(({ makespanMs }, index) => makespanMs / msOf(ours, index));
    const isStatic = rival === "static";
    line(`${what}: against ${rival}`, speedUps, {
      unit: "times its throughput",
      against: `${rival}, the same rollouts: times the lower bound`,
      ratio: round(mean(theirs.map(({ makespanMs, boundMs }) => makespanMs / boundMs))),
      ...(isStatic && { target: "at least 1.48", met: mean(speedUps) >= 1.48 }),
    });
  }
}

/** Four times as many rollouts at once as their contexts fit into memory. */
function thrash(): void {
  const crowded = { ...base(4), perBackend: 64, slots: 4 * 64 };
  const engine = { ...ENGINE, kvTokens: 250_000 };
  const ample = { ...ENGINE, kvTokens: 25_000_000 };
  const roomy = played({ ...crowded, engine: ample }, "least-work");
  for (const policy of ["least-work", "min-heap"] as const) {
    const tight = played({ ...crowded, engine }, policy);
    const hits = tight.map(({ hitShare, perfectShare }) => hitShare / perfectShare);
    const slower = tight.map(({ makespanMs }, index) => makespanMs / msOf(roomy, index));
    const ours = policy === "least-work";
    line(`KV thrash, ${policy}: prefix cache`, hits, {
      unit: "of the hits of perfect affinity",
      ...(ours && { target: "no collapse: at least 0.9", met: mean(hits) >= 0.9 }),
    });
    line(`KV thrash, ${policy}: time`, slower, {
      unit: "times the time with memory for all, least-work",
      ...(ours && { target: "no collapse: at most 1.5", met: mean(slower) <= 1.5 }),
    });
  }
}

/** One of four backends joins when a quarter of the time is over. */
function lateJoiner(): void {
  const given = { ...base(4), perBackend: 64 };
  const whole = played(given, "least-work");
  const joinMs = 0.25 * mean(whole.map(({ makespanMs }) => makespanMs));
  for (const policy of ["least-work", "min-heap"] as const) {
    const late = played({ ...given, joinMs }, policy);
    // What three could do until then, and four from then on.
    const ideal = whole.map(({ makespanMs }) => makespanMs + joinMs / 4);
    const slower = late.map(({ makespanMs }, index) => makespanMs / (ideal[index] ?? 1));
    const ours = policy === "least-work";
    line(`late joiner, ${policy}`, slower, {
      unit: "times the time that its later start explains",
      ...(ours && { target: "no collapse: at most 1.15", met: mean(slower) <= 1.15 }),
    });
  }
}

function msOf(all: Played[], index: number): number {
  return all[index]?.makespanMs ?? Number.NaN;
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

type Rest = { unit: string; against?: string; ratio?: number; target?: string; met?: boolean };

function line(name: string, values: number[], rest: Rest): void {
  const figures = { n: values.length, p50: percentile(values, 0.5), p99: percentile(values, 0.99) };
  print({ bench: "balance", case: name, ...figures, ...rest });
}

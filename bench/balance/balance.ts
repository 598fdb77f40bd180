import type { PolicyName } from "../../src/inference/balance/placement.ts";
import { presetOf } from "../../src/simulator/presets.ts";
import { percentile, print, round } from "../line.ts";
import { lowerBoundMs, provableBoundMs } from "./bounds.ts";
import { type ClusterOptions, type Played, play } from "./cluster.ts";
import { knownPlaces } from "./known-places.ts";
import { overService } from "./over-service.ts";
import { OPENHANDS, rolloutsOf, type Skew, SWE_AGENT, sampledTokens } from "./rollouts.ts";

/** The model and the GPUs that ProRL's ablation of balancing was done with. */
const ENGINE = presetOf("qwen3-14b@h100");
/** How long a batch takes hangs on its few longest rollouts: of small ones more are drawn. */
const SEEDS = { fewest: 3, most: 12, rollouts: 768 };
const BACKENDS = [2, 4, 8, 16];
const RIVALS: PolicyName[] = ["static", "round-robin", "min-heap", "consistent-hash"];
/** Twice what have room in memory in the end, as `run_slots` advises: the service looks at the memory, and nobody begins late. */
const SLOTS_PER_BACKEND = 24;
/** With fewer slots a static split does not outgrow its memory, which it does not look at. */
const FEWER_SLOTS = [8, 10, 12, 16];
/** Of more rollouts a backend, to choose all places beforehand takes minutes to play, and gains nothing. */
const MAX_PLACED = 32;
/** More would take minutes to play. */
const MAX_ROLLOUTS = 1_024;

type Case = Omit<ClusterOptions, "policy" | "moves" | "rollouts"> & {
  perBackend: number;
  skew: Skew;
};
type Way = {
  policy: PolicyName;
  moves: boolean;
  foresight?: boolean;
  longestFirst?: boolean;
  /** Places are chosen beforehand by all lengths; see `knownPlaces` for the share. */
  toolShare?: number;
};

const OURS: Way = { policy: "least-work", moves: true };

/** How long a batch of rollouts takes, against other ways to place them and against what is possible. */
export async function balance(): Promise<void> {
  for (const perBackend of [16, 32, 64, 256]) {
    for (const backends of BACKENDS) {
      if (perBackend * backends > MAX_ROLLOUTS) continue;
      batch(`${perBackend} rollouts a backend, ${backends} backends`, base(backends, perBackend));
    }
  }
  // ProRL's ablation of balancing: 32 instances with 8 rollouts each over 8 H100.
  const ablation = base(8, 32);
  batch("the same 32 and 8, of SWE-agent", { ...ablation, skew: SWE_AGENT });
  for (const instanceShare of [0.25, 0.75]) {
    const skew = { ...OPENHANDS, instanceShare };
    batch(`the same 32 and 8, ${instanceShare} of the spread between instances`, {
      ...ablation,
      skew,
    });
  }
  thrash();
  lateJoiner();
  await overService();
}

function base(backends: number, perBackend: number): Case {
  const slots = SLOTS_PER_BACKEND * backends;
  return { engine: ENGINE, backends, perBackend, slots, skew: OPENHANDS };
}

type Result = Played & { boundMs: number; provableMs: number };

/** The same rollouts each time, once for each seed. */
function played(given: Case, way: Way, seeds = seedsOf(given)): Result[] {
  return seeds.map((seed) => {
    const { perBackend, skew, ...rest } = given;
    const { longestFirst = false, toolShare, ...how } = way;
    const submitted = rolloutsOf(perBackend * given.backends, skew, seed);
    const rollouts = longestFirst
      ? submitted.toSorted((a, b) => sampledTokens(b) - sampledTokens(a))
      : submitted;
    const { engine, backends } = given;
    const places =
      toolShare === undefined ? undefined : knownPlaces(submitted, engine, backends, toolShare);
    const options = { ...rest, ...how, rollouts, places };
    return {
      ...play(options),
      boundMs: lowerBoundMs(options),
      provableMs: provableBoundMs(options),
    };
  });
}

function seedsOf({ perBackend, backends }: Case): number[] {
  const { fewest, most, rollouts } = SEEDS;
  const count = Math.round(rollouts / (perBackend * backends));
  return Array.from({ length: Math.min(most, Math.max(fewest, count)) }, (_, seed) => seed);
}

function batch(what: string, given: Case): void {
  const seeds = seedsOf(given);
  const ours = played(given, OURS, seeds);
  ownFigures(what, ours);
  const known = oracle(what, given, ours, seeds);
  const stay = { ...OURS, moves: false };
  against(`${what}: against least-work without moves`, ours, played(given, stay, seeds));
  for (const policy of RIVALS) {
    const theirs = played(given, { policy, moves: false }, seeds);
    const target = policy === "static" ? STATIC_TARGET : null;
    against(`${what}: against ${policy}`, ours, theirs, target);
  }
  const tuned = FEWER_SLOTS.map((slots) => {
    const fewer = { ...given, slots: slots * given.backends };
    return { slots, results: played(fewer, { policy: "static", moves: false }, seeds) };
  });
  const [best] = tuned.toSorted((a, b) => meanMs(a.results) - meanMs(b.results));
  if (!best) return;
  const name = `${what}: against static with the slots that suit it best, ${best.slots} a backend`;
  against(name, ours, best.results, STATIC_TARGET);
  attainable(name, known, best.results);
  if (given.perBackend <= SLOTS_PER_BACKEND) return;
  const fewer = played({ ...given, slots: 16 * given.backends }, OURS, seeds);
  against(`${what}: against least-work with 16 slots a backend`, ours, fewer);
}

function ownFigures(what: string, ours: Result[]): void {
  const ofBound = ours.map(({ makespanMs, boundMs }) => makespanMs / boundMs);
  line(`${what}: least-work`, ofBound, {
    unit: "times the lower bound (the longest rollout alone, or all work over all backends with full memories)",
    against:
      "what no schedule can beat, because who is to be done early has a batch nearly to itself: times the lower bound",
    ratio: mean(ours.map(({ provableMs, boundMs }) => provableMs / boundMs)),
    target: "within 10 % of the bound",
    met: mean(ofBound) <= 1.1,
  });
  const hits = ours.map(({ hitShare, perfectShare }) => hitShare / perfectShare);
  line(`${what}: prefix cache`, hits, {
    unit: "of the hits of perfect affinity",
    target: "at least 0.95",
    met: Math.min(...hits) >= 0.95,
  });
}

const STATIC_TARGET = 1.48;

function against(name: string, ours: Result[], theirs: Result[], target: number | null = null) {
  const speedUps = theirs.map(({ makespanMs }, index) => makespanMs / msOf(ours, index));
  line(name, speedUps, {
    unit: "times its throughput",
    against: "the rival: times the lower bound",
    ratio: mean(theirs.map(({ makespanMs, boundMs }) => makespanMs / boundMs)),
    ...(target !== null && { target: `at least ${target}`, met: mean(speedUps) >= target }),
  });
}

/** The best of what was found by schedules that know each length beforehand: what could yet be gained. */
function oracle(what: string, given: Case, ours: Result[], seeds: number[]): number[] {
  // Where the longest begin first there is little to move for, and where they do not there is.
  const knowing = { ...OURS, foresight: true };
  const ways: Way[] = [true, false].map((longestFirst) => {
    return { ...knowing, longestFirst, moves: !longestFirst };
  });
  if (given.perBackend <= MAX_PLACED) {
    for (const toolShare of [0.5, 1]) ways.push({ ...knowing, moves: false, toolShare });
  }
  const all = given.perBackend * given.backends;
  const tries = ways.map((way) => {
    const slots = way.toolShare === undefined ? given.slots : all;
    return played({ ...given, slots }, way, seeds);
  });
  const best = seeds.map((_, index) => Math.min(...tries.map((one) => msOf(one, index))));
  line(
    `${what}: with all lengths known beforehand, the best of ${ways.length} schedules`,
    best.map((ms, index) => ms / (ours[index]?.boundMs ?? Number.NaN)),
    {
      unit: "times the lower bound",
      against: "least-work, which does not know them: times as long",
      ratio: mean(best.map((ms, index) => msOf(ours, index) / ms)),
    },
  );
  return best;
}

/** Whether the target against the static split can be reached at all. */
function attainable(what: string, known: number[], theirs: Result[]): void {
  const speedUps = theirs.map(({ makespanMs }, index) => makespanMs / (known[index] ?? Number.NaN));
  line(`${what}, with all lengths known beforehand`, speedUps, {
    unit: "times its throughput",
    against: "what no schedule can exceed, by the proven bound: times its throughput",
    ratio: mean(theirs.map(({ makespanMs, provableMs }) => makespanMs / provableMs)),
  });
}

/** Four times the slots: so many rollouts at once that their contexts are several times the memory. */
function thrash(): void {
  const given = base(4, 64);
  const crowded = { ...given, slots: 4 * given.slots };
  const fitting = played({ ...given, slots: 12 * given.backends }, OURS);
  for (const policy of ["least-work", "min-heap"] as const) {
    const isOurs = policy === "least-work";
    const tight = played(crowded, { policy, moves: isOurs });
    const hits = tight.map(({ hitShare, perfectShare }) => hitShare / perfectShare);
    const slower = tight.map(({ makespanMs }, index) => makespanMs / msOf(fitting, index));
    line(`KV thrash, ${policy}: prefix cache`, hits, {
      unit: "of the hits of perfect affinity",
      ...(isOurs && { target: "no collapse: at least 0.9", met: Math.min(...hits) >= 0.9 }),
    });
    line(`KV thrash, ${policy}: time`, slower, {
      unit: "times the time of least-work with slots for what memory holds",
      against: "requests that an engine threw out and computed again",
      ratio: mean(tight.map(({ preemptions }) => preemptions)),
      ...(isOurs && { target: "no collapse: at most 1.1", met: mean(slower) <= 1.1 }),
    });
  }
}

/** One of four backends joins when a quarter of the time is over. */
function lateJoiner(): void {
  const given = base(4, 64);
  const whole = played(given, OURS);
  const joinMs = 0.25 * meanMs(whole);
  for (const policy of ["least-work", "min-heap"] as const) {
    const isOurs = policy === "least-work";
    const late = played({ ...given, joinMs }, { policy, moves: isOurs });
    // What three could do until then, and four from then on.
    const ideal = whole.map(({ makespanMs }) => makespanMs + joinMs / 4);
    const slower = late.map(({ makespanMs }, index) => makespanMs / (ideal[index] ?? 1));
    line(`late joiner, ${policy}`, slower, {
      unit: "times the time that its later start explains",
      ...(isOurs && { target: "no collapse: at most 1.15", met: mean(slower) <= 1.15 }),
    });
  }
}

function msOf(all: Result[], index: number): number {
  return all[index]?.makespanMs ?? Number.NaN;
}

function meanMs(all: Result[]): number {
  return mean(all.map(({ makespanMs }) => makespanMs));
}

function mean(values: number[]): number {
  return round(values.reduce((sum, value) => sum + value, 0) / values.length);
}

type Rest = { unit: string; against?: string; ratio?: number; target?: string; met?: boolean };

function line(name: string, values: number[], rest: Rest): void {
  const figures = { n: values.length, p50: percentile(values, 0.5), p99: percentile(values, 0.99) };
  print({ bench: "balance", case: name, ...figures, mean: mean(values), ...rest });
}

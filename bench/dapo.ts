import {
  type Algorithm,
  service,
  staticBatches,
  upstreamClient,
  waitForAll,
} from "./dapo-algorithms.ts";
import { Cluster } from "./dapo-cluster.ts";
import { GOAL, STEPS } from "./dapo-workload.ts";
import { percentile, print, round } from "./line.ts";

const SEEDS = [1, 2, 3];
const BACKENDS = [1, 2, 4, 8];

const RIVALS = {
  "a batch that waits for all": { run: waitForAll, target: 1.23 },
  "static batches with a filter": { run: staticBatches, target: null },
  "upstream's client": { run: upstreamClient, target: 1.1 },
  "ours, ending what is unfinished": { run: service("end"), target: null },
};

/** Simulated: the engines are a model of decoding in virtual time, the decisions are the service's own. */
export async function dapo(): Promise<void> {
  for (const backends of BACKENDS) {
    const ours = measure(service(), backends);
    const name = `${backends} simulated backends, ${STEPS} steps of ${GOAL} groups`;
    report(`${name}: ours`, ours);
    for (const [rival, { run, target }] of Object.entries(RIVALS)) {
      const theirs = measure(run, backends);
      report(`${name}: ${rival}`, theirs);
      const ratios = theirs.map(({ seconds }, index) => seconds / (ours[index]?.seconds ?? 0));
      const ratio = percentile(ratios, 0.5);
      print({
        bench: "dapo",
        case: `${name}: time of ${rival} over ours`,
        n: SEEDS.length,
        p50: ratio,
        p99: percentile(ratios, 0.99),
        unit: "ratio",
        ...(target === null ? {} : { target: `at least ${target}`, met: ratio >= target }),
      });
    }
  }
}

type Measured = {
  seconds: number;
  /** Share of all generated tokens. */
  thrownAway: number;
  uninformative: number;
  keptTokens: number;
  /** Mean share of the engines' width in use, and that of the worst half minute. */
  use: number;
  worstUse: number;
};

function measure(algorithm: Algorithm, backends: number): Measured[] {
  return SEEDS.map((seed) => {
    const cluster = new Cluster(backends);
    const { thrownAway, uninformative, keptTokens } = algorithm(cluster, seed);
    const { use, generated } = cluster;
    const seconds = cluster.nowS - cluster.startS;
    return {
      ...{ seconds, keptTokens },
      thrownAway: thrownAway / generated,
      uninformative: uninformative / generated,
      use: use.reduce((sum, share) => sum + share, 0) / use.length,
      worstUse: Math.min(...use),
    };
  });
}

type Target = { target: string; met: boolean };

function report(name: string, runs: Measured[]): void {
  const line = (what: string, of: (run: Measured) => number, unit: string, target?: Target) => {
    const values = runs.map(of);
    const p50 = percentile(values, 0.5);
    const p99 = percentile(values, 0.99);
    const { length: n } = values;
    print({ bench: "dapo", case: `${name}: ${what}`, n, p50, p99, unit, ...target });
  };
  const atLeast = (limit: number, of: (run: Measured) => number) => ({
    target: `at least ${limit}`,
    met: runs.every((run) => of(run) >= limit),
  });
  const below = { target: "under 0.05", met: runs.every(({ thrownAway }) => thrownAway < 0.05) };
  const isOurs = name.endsWith(": ours");
  line("seconds per step", ({ seconds }) => round(seconds / STEPS), "s");
  line(
    "engine use",
    ({ use }) => use,
    "share",
    isOurs ? atLeast(0.9, ({ use }) => use) : undefined,
  );
  const worst = isOurs ? atLeast(0.9, ({ worstUse }) => worstUse) : undefined;
  line("engine use of the worst half minute", ({ worstUse }) => worstUse, "share", worst);
  line("tokens thrown away", ({ thrownAway }) => thrownAway, "share", isOurs ? below : undefined);
  line("tokens of uninformative groups", ({ uninformative }) => uninformative, "share");
  line("mean length of what was kept", ({ keptTokens }) => keptTokens, "tokens");
}

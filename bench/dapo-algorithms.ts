import {
  type BatchGroup,
  type BatchPlan,
  deliverable,
  groupsWanted,
  informativeShare,
  unneeded,
} from "../src/jobs/batch.ts";
import {
  begin,
  createGroup,
  decide,
  type Group,
  isInformative as isCertainlyInformative,
  rulesOf,
  settle,
} from "../src/jobs/group.ts";
import { splitBatch } from "../src/protocol/batch.ts";
import type { Cluster, Rollout } from "./dapo-cluster.ts";
import { GOAL, INFORMATIVE_SHARE, SAMPLES, STEPS, sampleOf, WARM_UP } from "./dapo-workload.ts";

export type Outcome = {
  /** Tokens of rollouts that were ended, and of whole groups that nobody took. */
  thrownAway: number;
  /** Tokens of groups that teach nothing: the price of sampling, whoever pays it. */
  uninformative: number;
  /** Mean length of the rollouts that were trained on. */
  keptTokens: number;
};

export type Algorithm = (cluster: Cluster, seed: number) => Outcome;

const tokensOf = (rollouts: Rollout[]) => rollouts.reduce((sum, { tokens }) => sum + tokens, 0);

/** What became of the tokens. */
class Ledger {
  thrownAway = 0;
  uninformative = 0;
  #kept: number[] = [];

  /** Measures from here on. */
  restart(cluster: Cluster): void {
    this.thrownAway = 0;
    this.uninformative = 0;
    this.#kept = [];
    cluster.startMeasuring();
  }

  keep(rollouts: Rollout[]): void {
    this.#kept.push(...rollouts.map(({ tokens }) => tokens));
  }

  outcome(): Outcome {
    const total = this.#kept.reduce((sum, tokens) => sum + tokens, 0);
    const { thrownAway, uninformative } = this;
    return { thrownAway, uninformative, keptTokens: total / this.#kept.length };
  }
}

function isInformative(rollouts: Rollout[]): boolean {
  return new Set(rollouts.map(({ sample }) => sample.reward)).size > 1;
}

/** Whole batches, each waited for; `size` groups at a time until there are enough informative ones. */
function inBatches(size: (missing: number) => number): Algorithm {
  return (cluster, seed) => {
    const ledger = new Ledger();
    let instance = 0;
    for (let step = 0; step < WARM_UP + STEPS; step++) {
      if (step === WARM_UP) ledger.restart(cluster);
      let informative = 0;
      while (informative < GOAL) {
        const groups = Array.from({ length: size(GOAL - informative) }, () => {
          const row = instance++;
          return Array.from({ length: SAMPLES }, (_, sample) =>
            cluster.submit(sampleOf(seed, row, sample)),
          );
        });
        const all = groups.flat();
        let open = all.length;
        cluster.run(
          () => open--,
          () => open === 0,
        );
        for (const group of groups) {
          if (!isInformative(group)) ledger.uninformative += tokensOf(group);
          else if (informative++ < GOAL) ledger.keep(group);
          else ledger.thrownAway += tokensOf(group);
        }
      }
    }
    return ledger.outcome();
  };
}

/** One batch that is large enough to be expected to do, waited for whole. */
export const waitForAll = inBatches((missing) => Math.ceil(missing / INFORMATIVE_SHARE));

/** Batches of as many groups as are trained on, and a filter, until there are enough. */
export const staticBatches = inBatches(() => GOAL);

/**
 * What upstream's client does: it fills the slots with rollouts, drops groups that teach nothing, and at the goal
 * cancels every other one. Prompts that were not finished begin anew in the next step.
 */
export const upstreamClient: Algorithm = (cluster, seed) => {
  const ledger = new Ledger();
  let fresh = 0;
  let again: number[] = [];
  for (let step = 0; step < WARM_UP + STEPS; step++) {
    if (step === WARM_UP) ledger.restart(cluster);
    const open = new Map<number, Rollout[]>();
    let informative = 0;
    const fill = () => {
      while (cluster.freeSlots > 0) {
        const row = again.shift() ?? fresh++;
        const rollouts = Array.from({ length: SAMPLES }, (_, sample) =>
          cluster.submit(sampleOf(seed, row, sample)),
        );
        open.set(row, rollouts);
      }
    };
    fill();
    const onEnd = ({ sample }: Rollout) => {
      const rollouts = open.get(sample.instance) ?? [];
      if (rollouts.every(({ state }) => state === "over")) {
        open.delete(sample.instance);
        if (isInformative(rollouts)) {
          informative++;
          ledger.keep(rollouts);
        } else ledger.uninformative += tokensOf(rollouts);
      }
      if (informative < GOAL) fill();
    };
    cluster.run(onEnd, () => informative >= GOAL);
    for (const rollouts of open.values()) {
      for (const rollout of rollouts) cluster.end(rollout);
      ledger.thrownAway += tokensOf(rollouts);
    }
    again = [...open.keys(), ...again];
  }
  return ledger.outcome();
};

type Begun = { entry: BatchGroup; group: Group; rollouts: Rollout[] };

/** The service's own decisions: the modules of `src/jobs`, as `pipeline/batches.ts` applies them, and its defaults. */
export function service(unfinished?: BatchPlan["unfinished"]): Algorithm {
  // As a trainer has it that names a series and leaves the rest out.
  const request = { series: "bench", goal: { groups: GOAL }, num_samples: SAMPLES };
  const defaults = splitBatch(request).plan;
  const plan: BatchPlan = { ...defaults, unfinished: unfinished ?? defaults.unfinished };
  const rules = rulesOf({
    ...{ numSamples: SAMPLES, completeAt: SAMPLES, maxReplacements: 0 },
    ...{ onPolicyFailure: "replace", informative: "spread > 0", overlong: { mode: "keep" } },
  });
  return (cluster, seed) => {
    const ledger = new Ledger();
    const begun = new Map<number, Begun>();
    let instance = 0;
    for (let step = 0; step < WARM_UP + STEPS; step++) {
      if (step === WARM_UP) ledger.restart(cluster);
      let delivered = 0;
      const experience = { informative: 0, decided: 0 };
      const entries = () => [...begun.values()].map(({ entry }) => entry);

      const beginGroups = () => {
        const share = informativeShare(experience, plan.expectedShare);
        let wanted = groupsWanted(plan, GOAL - delivered, entries(), share);
        for (; wanted > 0 && cluster.freeSlots > 0; wanted--) {
          const seq = instance++;
          let group = createGroup(rules);
          const rollouts = Array.from({ length: SAMPLES }, (_, sample) => {
            group = begin(group, sample);
            return cluster.submit(sampleOf(seed, seq, sample));
          });
          const entry = { seq, position: seq, startedMs: 0, informative: null, complete: false };
          begun.set(seq, { entry, group, rollouts });
        }
      };
      const drop = ({ entry, rollouts }: Begun) => {
        for (const rollout of rollouts) cluster.end(rollout);
        ledger.thrownAway += tokensOf(rollouts);
        begun.delete(entry.seq);
      };
      const settleStep = () => {
        for (const { seq } of deliverable(plan, GOAL - delivered, entries())) {
          delivered++;
          ledger.keep(begun.get(seq)?.rollouts ?? []);
          begun.delete(seq);
        }
        if (delivered >= GOAL) return;
        const work = ({ seq }: BatchGroup) => tokensOf(begun.get(seq)?.rollouts ?? []);
        for (const { seq, complete } of unneeded(plan, GOAL - delivered, entries(), work)) {
          const group = begun.get(seq);
          if (group && !complete) drop(group);
        }
        beginGroups();
      };
      const onEnd = (rollout: Rollout) => {
        const { reward, tokens, instance: seq, sample } = rollout.sample;
        const live = begun.get(seq);
        if (!live) return;
        const end = { reward, length: { tokens, truncated: false } };
        live.group = settle(live.group, sample, end, rules);
        const decision = decide(live.group, rules);
        live.entry.informative = isCertainlyInformative(live.group, rules);
        if (decision.type === "complete") {
          experience.decided++;
          live.entry.complete = decision.informative;
          if (decision.informative) experience.informative++;
          else {
            ledger.uninformative += tokensOf(live.rollouts);
            begun.delete(seq);
          }
        }
        settleStep();
      };
      settleStep();
      cluster.run(onEnd, () => delivered >= GOAL);
      if (plan.unfinished === "end") for (const group of [...begun.values()]) drop(group);
    }
    return ledger.outcome();
  };
}

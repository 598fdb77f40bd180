import type { Job, Stage, StageTiming } from "./job.ts";

/** The part of a job that only `transition` and views read. It is stored as one text. */
export type JobLife = Pick<
  Job,
  "numAttempts" | "limits" | "failures" | "endingReason" | "timings" | "visits"
>;

const NOTHING: StageTiming = { queuedMs: 0, activeMs: 0 };
const NEW = {
  failures: [],
  endingReason: null,
  timings: { init: NOTHING, run: NOTHING, eval: NOTHING },
  visits: [],
};

/** As JSON, without what a new job has: most jobs are new when they are written first. */
export function writeLife(job: JobLife): string {
  const { numAttempts, limits, failures, endingReason, timings, visits } = job;
  return JSON.stringify({
    numAttempts,
    limits,
    failures: failures.length > 0 ? failures : undefined,
    endingReason: endingReason ?? undefined,
    timings: isNew(timings) ? undefined : timings,
    visits: visits.length > 0 ? visits : undefined,
  });
}

export function readLife(text: string): JobLife {
  return { ...NEW, ...JSON.parse(text) };
}

function isNew({ init, run, eval: evaluation }: Record<Stage, StageTiming>): boolean {
  const spent = init.queuedMs + init.activeMs + run.queuedMs + run.activeMs;
  return spent + evaluation.queuedMs + evaluation.activeMs === 0;
}

import { Pace } from "../../src/agent/pace.ts";
import type { StartStage, WorkerSettings } from "../../src/pipeline/messages.ts";
import type { SandboxHandle, SandboxSpec } from "../../src/sandbox/sandbox.ts";
import type { Recorder } from "../../src/trajectory/recorder.ts";
import { runStage, type StageParts } from "../../src/worker/run-stage.ts";
import { BACKEND, FakeEngine, fakeEngines, type Scripted } from "../support/fake-engine.ts";
import { FakeSandbox, fakeHandle, unwatched } from "../support/fake-sandbox.ts";
import { TASK_SETTINGS } from "../support/task-context.ts";

export const SETTINGS: WorkerSettings = {
  driver: "host",
  apptainer: "",
  bwrap: "",
  minIsolation: "B",
  startAttempts: 1,
  cgroups: null,
  dataDir: "/none",
  defaultImage: "/images/default",
  images: { cacheDir: "/none", maxBytes: 1, mountAboveBytes: null, apptainer: "" },
  sandbox: {
    writable: "overlay",
    startTimeoutMs: 1,
    processes: 2,
    openFiles: 3,
    fileBytes: 4,
    tmpfsBytes: 5,
    memoryBytes: 6,
    diskBytes: 7,
  },
  engineCallTimeoutMs: 1234,
  engineStallMs: 0,
  maxReplyBytes: 5678,
  maxOutcomeBytes: 1000,
  tasks: TASK_SETTINGS,
};

export const MATH_ROW = JSON.stringify({
  data_source: "math",
  prompt: [{ role: "user", content: "What is 1+1?" }],
  reward_model: { ground_truth: "2" },
});

export const ANSWERED = JSON.stringify({
  stop_reason: "answer",
  final_message: "\\boxed{2}",
  turns: 1,
});

/** A stage of a math job; INIT has no sandbox yet, later stages have the one that INIT made. */
export function startOf(stage: "init" | "run" | "eval", changes: Partial<StartStage> = {}) {
  const start: StartStage = {
    type: "start",
    jobId: "job-1",
    attempt: 1,
    stage,
    taskKind: "math",
    instance: MATH_ROW,
    options: "{}",
    handle: stage === "init" ? null : fakeHandle("s1"),
    warm: null,
    backend: stage === "run" ? BACKEND : null,
    outcome: stage === "eval" ? ANSWERED : null,
    allowance: null,
    record: null,
  };
  return { ...start, ...changes };
}

/** What every answer to a stage of `startOf` has that nothing else was said about. */
export function finishedOf(stage: "init" | "run" | "eval") {
  return {
    type: "stage_finished" as const,
    jobId: "job-1",
    attempt: 1,
    stage,
    handle: null,
    error: null,
    outcome: null,
    trajectory: null,
    verdict: null,
  };
}

/** The parts of a worker thread. Sandboxes `s1`, `s2`, … are made; whichever is attached is the same fake. */
export function setup(script: Scripted[] = [], changes: Partial<StageParts> = {}) {
  const sandbox = new FakeSandbox("s1");
  const abort = new AbortController();
  const specs: SandboxSpec[] = [];
  /** What was done with the sandbox, in order. */
  const events: string[] = [];
  const parts: StageParts = {
    settings: SETTINGS,
    driver: {
      name: "host",
      async start(spec) {
        const made = `s${specs.push(spec)}`;
        events.push("start");
        return fakeHandle(made);
      },
    },
    isOnNode: () => true,
    images: { acquire: async (path) => ({ path, digest: null, lock: null }) },
    async attach({ id }: SandboxHandle) {
      events.push(`attach ${id}`);
      return sandbox;
    },
    async end({ id }) {
      events.push(`end ${id}`);
    },
    watch: unwatched,
    pace: new Pace(null, () => events.push("pause")),
    engines: fakeEngines(new FakeEngine(script)),
    sandboxStarted: ({ id }) => events.push(`tell ${id}`),
    slotFreed: async () => void events.push("free"),
    ...changes,
  };
  return {
    parts,
    sandbox,
    abort,
    specs,
    events,
    run: (start: StartStage, recorder?: Recorder) => runStage(start, parts, abort.signal, recorder),
  };
}

/** The kinds are looked up by name, so a kind that behaves otherwise stands in for one, for a while. */
export function replaced<T extends object, K extends keyof T>(
  owner: T,
  name: K,
  value: T[K],
): Disposable {
  const old = owner[name];
  owner[name] = value;
  return {
    [Symbol.dispose]: () => {
      owner[name] = old;
    },
  };
}

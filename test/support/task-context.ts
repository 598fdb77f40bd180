import type { Dialogue } from "../../src/agent/dialogue.ts";
import type { EvalContext, RunContext } from "../../src/tasks/task-kind.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";

export const TASK_SETTINGS: EvalContext["settings"] = { images: {} };

/** What a stage gives a task kind, where a test says nothing else. */
export function runContext(changes: Partial<RunContext> = {}): RunContext {
  return {
    jobId: "j",
    options: {},
    settings: TASK_SETTINGS,
    sandbox: null,
    converse: (): Promise<Dialogue> => Promise.reject(new Error("there is nobody to talk to")),
    backendId: null,
    recorder: new Recorder("j", 1),
    agentDone: () => {},
    signal: new AbortController().signal,
    ...changes,
  };
}

export function evalContext(changes: Partial<EvalContext> = {}): EvalContext {
  const signal = new AbortController().signal;
  return { jobId: "j", settings: TASK_SETTINGS, sandbox: null, signal, ...changes };
}

import type { Dialogue } from "../../src/agent/dialogue.ts";
import { taskSettings } from "../../src/cli/task-settings.ts";
import { loadConfig } from "../../src/config/config.ts";
import { driveAgent } from "../../src/tasks/drive-agent.ts";
import type { EvalContext, RunContext } from "../../src/tasks/task-kind.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";

export const TASK_SETTINGS: EvalContext["settings"] = taskSettings(
  loadConfig({ env: {}, flags: {} }),
);

const NO_LIMIT = Number.POSITIVE_INFINITY;

/** What a stage gives a task kind, where a test says nothing else. */
export function runContext(changes: Partial<RunContext> = {}): RunContext {
  const context = {
    jobId: "j",
    options: {},
    settings: TASK_SETTINGS,
    sandbox: null,
    mcpServers: [],
    converse: (): Promise<Dialogue> => Promise.reject(new Error("there is nobody to talk to")),
    backendId: null,
    recorder: new Recorder("j", 1),
    agentDone: () => {},
    signal: new AbortController().signal,
    ...changes,
  };
  return { agent: (task) => driveAgent(context, task), ...context };
}

export function evalContext(changes: Partial<EvalContext> = {}): EvalContext {
  const signal = new AbortController().signal;
  const renew = () => Promise.reject(new Error("there is no other sandbox"));
  const nothing = { sandbox: null, renew, limitMs: NO_LIMIT, untilMs: NO_LIMIT };
  return { jobId: "j", settings: TASK_SETTINGS, signal, ...nothing, ...changes };
}

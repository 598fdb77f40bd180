import { expect, test } from "bun:test";
import { ServiceTally } from "../../src/cli/service-tally.ts";
import { type ServiceState, serviceLine, serviceScreen } from "../../src/cli/service-view.ts";
import { errorBodyOf } from "../../src/errors.ts";
import { viewOf } from "./views.ts";

const failure = (code: "oom" | "engine_timeout") => ({
  ...{ attempt: 1, stage: "run" as const, failed_at: "2026-01-01T00:00:00.000Z" },
  error: errorBodyOf(code, "gone"),
});

/** Two scored, one of them at the second attempt, and one that failed. */
function state(): ServiceState {
  const tally = new ServiceTally();
  tally.add(viewOf("a", { state: "succeeded", reward: 1 }));
  tally.add(viewOf("b", { state: "succeeded", reward: 0, failures: [failure("engine_timeout")] }));
  const error = { ...errorBodyOf("oom", "much"), stage: "run" as const };
  tally.add(viewOf("c", { state: "failed", reward: null, error }));
  const backend = { id: "b1", model: "qwen\x1b[2J", state: "ejected", why: "5 of 5 calls failed" };
  return {
    status: {
      ...{ version: "1.2.3", draining: false, unfinished: 7, finished_cursor: 3 },
      weights: { version: null, paused: null },
      stages: {
        init: { pending: 3, active: 2, slots: 8 },
        run: { pending: 0, active: 4, slots: 64 },
      },
    },
    backends: [{ ...backend, in_flight: 4, turns: 3 } as ServiceState["backends"][number]],
    tally,
  };
}

test("a terminal shows stages, backends, rewards and failures, and a server's words stay words", () => {
  expect(serviceScreen(state())).toBe(`rolloutd 1.2.3

stage  waiting  at work  slots
init         3        2      8
run          0        4     64

backend  model  state    rollouts  calls  why
b1       qwen   ejected         4      3  5 of 5 calls failed

finished 3 (2 scored, 1 failed, 0 cancelled), mean reward 0.500
failed: oom 1
tried again: engine_timeout 1
`);
});

test("elsewhere it is a line", () => {
  expect(serviceLine(state())).toBe(
    "init 3 + 2/8 · run 0 + 4/64 · backends 0/1 · " +
      "finished 3 (2 scored, 1 failed, 0 cancelled), mean reward 0.500 · oom 1\n",
  );
});

test("a pause for new weights is shown", () => {
  const { status, ...rest } = state();
  const paused = { ...rest, status: { ...status, weights: { version: "3", paused: "drain" } } };
  expect(serviceScreen(paused)).toStartWith("rolloutd 1.2.3, paused for new weights\n");
  expect(serviceLine(paused)).toEndWith(" · paused for new weights\n");
});

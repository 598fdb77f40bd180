import { describe, expect, test } from "bun:test";
import { readProcessRequest } from "../../../src/compat/prorl/process-request.ts";
import { prorlResult } from "../../../src/compat/prorl/result.ts";
import type { RolloutView } from "../../../src/protocol/view.ts";
import type { Trajectory } from "../../../src/trajectory/record.ts";
import { failedView, viewOf } from "../../cli/views.ts";

const REQUEST = readProcessRequest({
  instance: { data_source: "deepscaler", instance_id: "i", trajectory_id: 3, prompt: null },
});

const TRAJECTORY: Trajectory = {
  version: 1,
  job_id: "j",
  attempt: 1,
  token_ids: "absent",
  segments: [],
  tools: [],
  messages: [
    { role: "user", content: "What?" },
    { role: "assistant", content: "This." },
  ],
  turns: [],
  stop_reason: "finish",
};

const result = (changes: Partial<RolloutView>, trajectory: Trajectory | null = TRAJECTORY) =>
  prorlResult(REQUEST, viewOf("j", changes), trajectory, { inputIds: true, patch: null });

/** What decides whether and how a trainer uses a result. */
const decisive = ({
  success,
  resolved,
  error,
  critical_error,
  filter,
  ...rest
}: ReturnType<typeof result>) => [
  ...[success, resolved, error, critical_error, filter, rest.failure_class],
];

const ended = (stage: RolloutView["stage"], error: Partial<NonNullable<RolloutView["error"]>>) => {
  const failed = failedView("j").error as NonNullable<RolloutView["error"]>;
  return {
    state: "failed" as const,
    stage,
    reward: null,
    verdict: null,
    error: { ...failed, ...error },
  };
};

describe("a result in the shape of ProRL's clients", () => {
  test("has each key each time, also when nothing was done", () => {
    const keys = Object.keys(result({ stop_reason: "finish" })).sort();
    const nothing = result({ ...ended("init", { stage: "init" }), stop_reason: null }, null);
    expect(Object.keys(nothing).sort()).toEqual(keys);
    expect(nothing).toMatchObject({
      messages: [],
      tools: [],
      git_patch: null,
      end_properly: false,
    });
    expect(nothing).toMatchObject({ instance_id: "i", trajectory_id: 3 });
  });

  test("is resolved by its reward alone", () => {
    const solved = result({ stop_reason: "finish", reward: 1 });
    expect(decisive(solved)).toEqual([true, true, null, null, false, null]);
    expect(solved.finish).toBe(true);
    const wrong = result({ stop_reason: "finish", reward: 0 });
    expect(decisive(wrong)).toEqual([true, false, null, null, false, null]);
    const partly = result({ stop_reason: "finish", reward: 0.99 });
    expect([partly.resolved, partly.reward]).toEqual([false, 0.99]);
  });

  test("calls an agent that went on too long an error that EVAL's verdict survives", () => {
    const long = result({ stop_reason: "max_turns", reward: 1 });
    expect(decisive(long).slice(0, 2)).toEqual([false, true]);
    expect([long.critical_error, long.filter, long.stop_reason]).toEqual([null, true, "max_turns"]);
  });

  test("says in which stage a failure was, and whose", () => {
    const run = result(ended("run", { message: "no answer" }));
    expect(decisive(run)).toEqual([
      ...[false, false, "Error in run agent: no answer", "run", true, "infra"],
    ]);
    const init = result(ended("init", { message: "bad row", boundary: "task" }), null);
    expect([init.critical_error, init.failure_class]).toEqual(["init", "task"]);
    const memory = result(ended("run", { code: "oom", boundary: "policy" }));
    expect([memory.critical_error, memory.failure_class]).toEqual(["run", "agent"]);
  });

  test("calls a passed limit a timeout, and keeps what was said", () => {
    const late = result(ended("run", { code: "deadline_exceeded", boundary: "policy" }));
    expect(late.error).toBe("Error in run agent: Operation timed out");
    expect([late.critical_error, late.timing.timeout_triggered]).toEqual(["timeout", true]);
    expect(late.messages.at(-1)?.role).toBe("assistant");
  });

  test("of a cancelled rollout masks itself, and keeps what was said", () => {
    const cancelled = result({ ...ended("run", { code: "cancelled" }), state: "cancelled" });
    expect(cancelled).toMatchObject({ cancelled: true, critical_error: "cancelled", filter: true });
    expect(cancelled.error).toStartWith("Cancelled: ");
    expect(cancelled.messages).toHaveLength(2);
  });

  test("whose tokens are not one sequence has no messages and no verdict to train on", () => {
    const turn = { message: 1 } as Trajectory["turns"][number];
    const forked = { ...TRAJECTORY, token_ids: "exact" as const, turns: [turn] };
    const broken = result({ stop_reason: "finish", reward: 1 }, forked);
    expect(broken).toMatchObject({ critical_error: "final_result", resolved: false, messages: [] });
    expect(broken).toMatchObject({ failure_class: "infra", filter: true, success: false });
  });

  test("counts the work of the stages, and waiting apart", () => {
    const { timing } = result({
      timings: {
        init: { queued_ms: 100, active_ms: 200 },
        run: { queued_ms: 300, active_ms: 400 },
        eval: { queued_ms: 0, active_ms: 50 },
      },
      created_at: "2026-01-01T00:00:00.000Z",
      finished_at: "2026-01-01T00:00:02.000Z",
    });
    expect(timing).toEqual({
      init_time: 0.2,
      run_time: 0.4,
      eval_time: 0.05,
      counted_elapsed: 0.65,
      others_time: 1.35,
      timeout_triggered: false,
    });
  });
});

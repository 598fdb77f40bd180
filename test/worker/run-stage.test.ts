import { describe, expect, test } from "bun:test";
import { closeSync } from "node:fs";
import { ServiceError } from "../../src/errors.ts";
import { abortable } from "../../src/lib/abortable.ts";
import { FileLock } from "../../src/lib/file-lock.ts";
import { echo } from "../../src/tasks/echo/echo.ts";
import { says } from "../support/fake-engine.ts";
import { fakeHandle } from "../support/fake-sandbox.ts";
import { tempDir } from "../support/temp-dir.ts";
import { ANSWERED, finishedOf, MATH_ROW, replaced, SETTINGS, setup, startOf } from "./setup.ts";

const ECHO = { taskKind: "echo", instance: '{"data_source":"echo","reward":0.5}', handle: null };

describe("INIT", () => {
  test("makes a sandbox, tells of it at once, prepares it, and keeps it for RUN", async () => {
    const t = setup();
    t.sandbox.onCell = async () => {
      t.events.push("prepare");
      return {};
    };
    expect(await t.run(startOf("init"))).toEqual({
      ...finishedOf("init"),
      handle: fakeHandle("s1"),
    });
    expect(t.events).toEqual(["start", "tell s1", "attach s1", "prepare"]);
    expect(t.sandbox.detached).toBe(true);
    const { writable, ...limits } = SETTINGS.sandbox;
    expect(t.specs).toEqual([
      { id: expect.any(String), image: "/images/default", writable, limits },
    ]);
  });

  test("has answered only when the sandbox is free for another thread", async () => {
    const t = setup();
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    t.sandbox.onDetach = async () => {
      setImmediate(resolve);
      await promise;
      order.push("detached");
    };
    await t.run(startOf("init")).then(() => order.push("answered"));
    expect(order).toEqual(["detached", "answered"]);
  });

  test("makes the sandbox from the rollout's own image, with a name of its own per attempt", async () => {
    const t = setup();
    await t.run(startOf("init", { options: '{"image":"/images/own"}' }));
    await t.run(startOf("init", { attempt: 2 }));
    await t.run(startOf("init", { jobId: "job-2" }));
    expect(t.specs.map(({ image }) => image)).toEqual([
      "/images/own",
      "/images/default",
      "/images/default",
    ]);
    expect(new Set(t.specs.map(({ id }) => id)).size).toBe(3);
  });

  test("without any image it fails with the mend", async () => {
    const t = setup([], { settings: { ...SETTINGS, defaultImage: null } });
    const { error } = await t.run(startOf("init"));
    expect(error).toEqual({
      code: "image_not_found",
      message: "the job names no image and there is no default",
      boundary: "sandbox",
      retryable: false,
      mend: "start rolloutd with --image DIR, or set `image` in the rollout",
    });
    expect(t.events).toEqual([]);
  });

  test("that fails to prepare the sandbox ends it before it answers", async () => {
    const t = setup();
    t.sandbox.onCell = async () => ({ ok: false, output: "no numpy" });
    const finished = await t.run(startOf("init"));
    const code = finished.error?.code;
    expect({ ...finished, error: code }).toEqual({
      ...finishedOf("init"),
      error: "image_invalid" as never,
    });
    expect(t.events.at(-1)).toBe("end s1");
  });

  test("whose sandbox does not start has nothing to end", async () => {
    const start = async () => {
      throw new ServiceError("sandbox_start_failed", "no user namespaces");
    };
    const t = setup([], { driver: { name: "host", start } });
    const { error, handle } = await t.run(startOf("init"));
    expect([error?.code, handle, t.events]).toEqual(["sandbox_start_failed", null, []]);
  });

  test("gives the image's lock to the sandbox, and gives it up where none starts", async () => {
    using dir = tempDir();
    const acquire = async (path: string) => {
      const lock = new FileLock(dir.file("lock"));
      lock.tryShared();
      return { path, digest: "d", lock };
    };
    using other = new FileLock(dir.file("lock"));
    const start = async () => {
      expect(other.tryExclusive()).toBe(false);
      throw new ServiceError("sandbox_start_failed", "no user namespaces");
    };
    await setup([], { images: { acquire }, driver: { name: "host", start } }).run(startOf("init"));
    expect(other.tryExclusive()).toBe(true);
    other.unlock();
    const { handle } = await setup([], { images: { acquire } }).run(startOf("init"));
    expect(handle?.imageLock).toEqual({ fd: expect.any(Number), file: dir.file("lock") });
    expect(other.tryExclusive()).toBe(false);
    closeSync(handle?.imageLock?.fd ?? -1);
    expect(other.tryExclusive()).toBe(true);
  });

  test("that is cancelled while its image is unpacked starts no sandbox", async () => {
    const acquire = (_image: string, signal: AbortSignal) =>
      abortable(new Promise<never>(() => {}), signal);
    const t = setup([], { images: { acquire } });
    const finished = t.run(startOf("init"));
    t.abort.abort(new ServiceError("cancelled", "by the client"));
    expect((await finished).error?.code).toBe("cancelled");
    expect(t.events).toEqual([]);
  });

  test("of a kind without a sandbox makes none", async () => {
    const t = setup();
    expect(await t.run(startOf("init", ECHO))).toEqual(finishedOf("init"));
    expect(t.events).toEqual([]);
  });
});

describe("RUN", () => {
  test("gives the outcome and the trajectory, and ends the sandbox that EVAL does not need", async () => {
    const t = setup([says("\\boxed{2}")]);
    const finished = await t.run(startOf("run"));
    expect({ ...finished, trajectory: JSON.parse(finished.trajectory ?? "null") }).toEqual({
      ...finishedOf("run"),
      outcome: ANSWERED,
      trajectory: expect.objectContaining({ job_id: "job-1", attempt: 1, stop_reason: "answer" }),
      sampledTokens: 2,
    });
    expect(t.events).toEqual(["attach s1", "end s1"]);
  });

  test("that fails gives what was recorded before, and ends the sandbox", async () => {
    const down = async () => {
      throw new ServiceError("engine_unreachable", "connection refused");
    };
    const t = setup([says("Let me see."), down]);
    const { error, outcome, handle, trajectory, turns } = await t.run(startOf("run"));
    expect([error?.code, outcome, handle]).toEqual(["engine_unreachable", null, null]);
    expect(JSON.parse(turns ?? "null")).toEqual(JSON.parse(trajectory ?? "null").turns);
    const { messages, stop_reason } = JSON.parse(trajectory ?? "null");
    expect([messages.length, messages[2].content, stop_reason]).toEqual([4, "Let me see.", null]);
    expect(t.events).toEqual(["attach s1", "end s1"]);
  });

  test("of a sandbox that is gone fails, and has no trajectory", async () => {
    const attach = async () => {
      throw new ServiceError("sandbox_died", "gone");
    };
    const t = setup([], { attach });
    const { error, trajectory } = await t.run(startOf("run"));
    expect([error?.code, trajectory, t.events]).toEqual(["sandbox_died", null, ["end s1"]]);
  });

  test("a bug is told as one, and costs no other job anything", async () => {
    const buggy = async () => {
      throw new TypeError("undefined is not a function");
    };
    const { error } = await setup([buggy]).run(startOf("run"));
    expect(error).toEqual({
      code: "internal",
      message: "TypeError: undefined is not a function",
      boundary: "service",
      retryable: false,
    });
  });
});

describe("EVAL", () => {
  test("gives the verdict, in a sandbox of which nothing is left", async () => {
    const t = setup();
    const finished = await t.run(startOf("eval", { handle: null }));
    const verdict = { reward: 1, rule: expect.any(String), reason: expect.any(String) };
    expect(finished).toEqual({ ...finishedOf("eval"), verdict });
    expect(t.events).toEqual([]);
  });

  test.each([1.5, -0.5, Number.NaN])("a reward of %p is the verifier's failure", async (reward) => {
    using _ = replaced(echo, "evaluate", async () => ({ reward, rule: "r", reason: "." }));
    const { error, verdict } = await setup().run(startOf("eval", ECHO));
    expect([error, verdict]).toEqual([
      {
        code: "verifier_failed",
        message: `the verifier gave ${reward} as a reward`,
        boundary: "verifier",
        retryable: true,
      },
      null,
    ]);
  });

  test("what is told of a verdict or failure holds no half of a character", async () => {
    const half = "a\ud83d";
    const evaluate = async () => ({ reward: 1, rule: "r", reason: half, details: { log: [half] } });
    using _ = replaced(echo, "evaluate", evaluate);
    const { verdict } = await setup().run(startOf("eval", ECHO));
    expect(verdict).toMatchObject({ reason: "a\ufffd", details: { log: ["a\ufffd"] } });
    expect(new ServiceError("verifier_failed", half).toBody().message).toBe("a\ufffd");
  });

  test.each([0, 1])("a reward of %p is in range", async (reward) => {
    const instance = JSON.stringify({ data_source: "echo", reward });
    const { verdict, error } = await setup().run(startOf("eval", { ...ECHO, instance }));
    expect([verdict?.reward, error]).toEqual([reward, null]);
  });

  test("that hands over more than it may fails as the policy's doing", async () => {
    const final_message = "x".repeat(SETTINGS.maxOutcomeBytes);
    const run = async () => ({ stop_reason: "done", final_message, turns: 0 }) as const;
    using _ = replaced(echo, "run", run);
    const { error, outcome } = await setup().run(startOf("run", ECHO));
    expect([error?.code, error?.boundary, outcome]).toEqual(["outcome_too_large", "policy", null]);
  });

  test("without the outcome of RUN is a bug, not a reward", async () => {
    const { error, verdict } = await setup().run(startOf("eval", { ...ECHO, outcome: null }));
    expect([error?.code, verdict]).toEqual(["internal", null]);
  });
});

test("an instance that its kind no longer takes fails the job, not the thread", async () => {
  const t = setup();
  const instance = JSON.stringify({ ...JSON.parse(MATH_ROW), prompt: null });
  const { error } = await t.run(startOf("run", { instance }));
  expect([error?.code, t.events]).toEqual(["invalid_field", ["end s1"]]);
});

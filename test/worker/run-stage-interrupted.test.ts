import { describe, expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import type { StageFinished } from "../../src/pipeline/messages.ts";
import { echo } from "../../src/tasks/echo/echo.ts";
import { Recorder } from "../../src/trajectory/recorder.ts";
import { calls, neverAnswers, says } from "../support/fake-engine.ts";
import { finishedOf, replaced, setup, startOf } from "./setup.ts";

const CANCELLED = new ServiceError("cancelled", "cancelled");
const DIED = new ServiceError("sandbox_died", "the sandbox ended by itself");
const NEVER = new Promise<never>(() => {});

function messagesOf({ trajectory }: StageFinished): string[] {
  return JSON.parse(trajectory ?? "null").messages.map(({ role }: { role: string }) => role);
}

describe("an abort", () => {
  test("inside a model call ends the sandbox and gives what was recorded", async () => {
    const t = setup([
      says("Let me see."),
      (signal) => {
        queueMicrotask(() => t.abort.abort(CANCELLED));
        return neverAnswers(signal);
      },
    ]);
    const finished = await t.run(startOf("run"));
    const { trajectory } = finished;
    const error = CANCELLED.toBody();
    expect(finished).toEqual({ ...finishedOf("run"), error, trajectory, sampledTokens: 2 });
    expect(messagesOf(finished)).toEqual(["system", "user", "assistant", "user"]);
    expect(t.events).toEqual(["attach s1", "end s1", "free"]);
  });

  test("inside a tool that does not heed it is answered all the same", async () => {
    const t = setup([calls(["execute_ipython_cell", { code: "while True: pass" }])]);
    t.sandbox.onCell = () => {
      queueMicrotask(() => t.abort.abort(CANCELLED));
      return NEVER;
    };
    const finished = await t.run(startOf("run"));
    expect(finished.error).toEqual(CANCELLED.toBody());
    expect(messagesOf(finished)).toEqual(["system", "user", "assistant"]);
    expect(t.events).toEqual(["attach s1", "end s1", "free"]);
  });

  test("by a deadline names the tool call that had not come back, and the record has it", async () => {
    const code = "while True: pass\u001b[2J";
    const t = setup([says("Hm."), calls(["execute_ipython_cell", { code }])]);
    t.sandbox.onCell = (cell) => {
      if (!cell.text.includes("while True")) return Promise.resolve({});
      queueMicrotask(() =>
        t.abort.abort(new ServiceError("deadline_exceeded", "a deadline passed")),
      );
      return NEVER;
    };
    const { error, trajectory } = await t.run(startOf("run"));
    expect(error?.details?.during).toMatch(
      /^the tool call execute_ipython_cell of turns\[1\] \(while True: pass\), which ran for \d+ ms$/,
    );
    expect(error?.details?.tool_call).toMatchObject({ turn: 1, name: "execute_ipython_cell" });
    expect(JSON.parse(trajectory ?? "").turns[1].tools).toMatchObject([
      { name: "execute_ipython_cell", status: "unfinished", message: null },
    ]);
  });

  test("by a deadline names the call of the model that had not come back", async () => {
    const t = setup([
      (signal) => {
        queueMicrotask(() => t.abort.abort(new ServiceError("deadline_exceeded", "over")));
        return neverAnswers(signal);
      },
    ]);
    const { error } = await t.run(startOf("run"));
    expect(error?.details?.during).toMatch(/^the call of the model for turns\[0\], which ran for/);
  });

  test("while INIT prepares the sandbox ends the sandbox", async () => {
    const t = setup();
    t.sandbox.onCell = () => {
      queueMicrotask(() => t.abort.abort(CANCELLED));
      return NEVER;
    };
    expect(await t.run(startOf("init"))).toEqual({
      ...finishedOf("init"),
      error: CANCELLED.toBody(),
    });
    expect(t.events).toEqual(["start", "tell s1", "attach s1", "end s1"]);
  });

  test("while the sandbox starts is told to the driver, and there is nothing to end", async () => {
    const start = (_spec: unknown, signal: AbortSignal) => {
      queueMicrotask(() => t.abort.abort(CANCELLED));
      return neverAnswers(signal);
    };
    const t = setup([], { driver: { name: "host", start } });
    const { error } = await t.run(startOf("init"));
    expect([error, t.events]).toEqual([CANCELLED.toBody(), []]);
  });

  test("while INIT attaches is told to the sandbox, which is ended", async () => {
    const attach = (_handle: unknown, signal: AbortSignal) => {
      queueMicrotask(() => t.abort.abort(CANCELLED));
      return neverAnswers(signal);
    };
    const t = setup([], { attach });
    const { error } = await t.run(startOf("init"));
    expect([error, t.events]).toEqual([CANCELLED.toBody(), ["start", "tell s1", "end s1"]]);
  });

  test("is the reason that is given, whatever the work made of it", async () => {
    const start = async () => {
      t.abort.abort(CANCELLED);
      throw new ServiceError("sandbox_start_failed", "the starter was killed");
    };
    const t = setup([], { driver: { name: "host", start } });
    expect((await t.run(startOf("init"))).error).toEqual(CANCELLED.toBody());
  });

  test("is answered only when the sandbox has been ended", async () => {
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = async () => {
      setImmediate(resolve);
      await promise;
      order.push("ended");
    };
    const t = setup([neverAnswers], { end });
    const run = t.run(startOf("run")).then(() => order.push("answered"));
    t.abort.abort(CANCELLED);
    await run;
    expect(order).toEqual(["ended", "answered"]);
  });

  test("has begun the end of the sandbox before anything of the stage is unwound", async () => {
    const t = setup([
      (signal) => {
        queueMicrotask(() => {
          t.abort.abort(CANCELLED);
          t.events.push("aborted");
        });
        return neverAnswers(signal);
      },
    ]);
    await t.run(startOf("run"));
    expect(t.events).toEqual(["attach s1", "end s1", "aborted", "free"]);
  });

  test("gives the slot back when the sandbox has been ended, before the record is written", async () => {
    const order: string[] = [];
    const cancelled = (signal: AbortSignal) => {
      queueMicrotask(() => t.abort.abort(CANCELLED));
      return neverAnswers(signal);
    };
    const end = async () => {
      await Bun.sleep(1);
      order.push("ended");
    };
    const slotFreed = async () => void order.push("freed");
    const t = setup([cancelled], { end, slotFreed });
    const recorder = new Recorder("job-1", 1);
    const toJson = recorder.toJson.bind(recorder);
    recorder.toJson = () => {
      order.push("recorded");
      return toJson();
    };
    await t.run(startOf("run"), recorder);
    expect(order).toEqual(["ended", "freed", "recorded"]);
  });

  test("gives what is recorded while the sandbox ends", async () => {
    const end = Promise.withResolvers<void>();
    const t = setup(
      [
        says("Let me see."),
        (signal) => {
          queueMicrotask(() => t.abort.abort(CANCELLED));
          return neverAnswers(signal).catch(async () => {
            await Bun.sleep(1);
            setTimeout(end.resolve, 1);
            return says("Cut off.");
          });
        },
      ],
      { end: () => end.promise },
    );
    const roles = messagesOf(await t.run(startOf("run")));
    expect(roles).toEqual(["system", "user", "assistant", "user", "assistant"]);
  });

  test("between the work and its answer is answered when the sandbox has been ended", async () => {
    const order: string[] = [];
    const end = Promise.withResolvers<void>();
    const t = setup([], { end: () => end.promise.then(() => void order.push("ended")) });
    t.sandbox.detach = async () => t.abort.abort(CANCELLED);
    const run = t.run(startOf("init")).then(() => order.push("answered"));
    await new Promise((resolve) => setImmediate(resolve));
    end.resolve();
    await run;
    expect(order).toEqual(["ended", "answered"]);
  });
});

describe("a sandbox that dies", () => {
  test("aborts the model call that is under way, and fails the job as retryable", async () => {
    const t = setup([
      (signal) => {
        queueMicrotask(() => t.sandbox.die(DIED));
        return neverAnswers(signal);
      },
    ]);
    const finished = await t.run(startOf("run"));
    expect(finished.error).toMatchObject({ code: "sandbox_died", retryable: true });
    expect(messagesOf(finished)).toEqual(["system", "user"]);
    expect(t.events).toEqual(["attach s1", "end s1"]);
  });

  test("ends the wait for a tool", async () => {
    const t = setup([calls(["execute_ipython_cell", { code: "1" }])]);
    t.sandbox.onCell = () => {
      queueMicrotask(() => t.sandbox.die(DIED));
      return NEVER;
    };
    expect((await t.run(startOf("run"))).error?.code).toBe("sandbox_died");
  });

  test("after a cancel is a cancel", async () => {
    const t = setup([neverAnswers]);
    const run = t.run(startOf("run"));
    t.abort.abort(CANCELLED);
    t.sandbox.die(DIED);
    expect((await run).error).toEqual(CANCELLED.toBody());
  });
});

describe("a stage without a sandbox", () => {
  const ECHO = { taskKind: "echo", handle: null };

  test("ends with an abort that came before it", async () => {
    const t = setup();
    t.abort.abort(CANCELLED);
    const instance = '{"data_source":"echo","run_ms":600000}';
    expect((await t.run(startOf("run", { ...ECHO, instance }))).error?.code).toBe("cancelled");
  });

  test("ends with an abort that its verifier does not heed", async () => {
    using _ = replaced(echo, "evaluate", () => NEVER);
    const t = setup();
    const run = t.run(startOf("eval", { ...ECHO, instance: '{"data_source":"echo"}' }));
    t.abort.abort(CANCELLED);
    expect((await run).error?.code).toBe("cancelled");
  });
});

describe("a sandbox that goes beyond its limits", () => {
  const OOM = new ServiceError("oom", "the sandbox had 8 bytes of memory, and may have 6");

  test("fails the job by that limit, not by the sandbox's death, and is watched no longer", async () => {
    const crossing = new AbortController();
    let watching = "";
    const watch = ({ id }: { id: string }) => {
      watching = id;
      const peak = { memoryBytes: 7, processes: 1 };
      return { peak, crossed: crossing.signal, [Symbol.dispose]: () => (watching = "nothing") };
    };
    const hog = calls(["execute_ipython_cell", { code: "x = [0] * 10**12" }]);
    const t = setup([hog], { watch });
    t.sandbox.onCell = () => {
      expect(watching).toBe("s1");
      queueMicrotask(() => {
        crossing.abort(OOM);
        t.sandbox.die(DIED);
      });
      return NEVER;
    };
    const finished = await t.run(startOf("run"));
    expect(finished.error).toEqual({
      code: "oom",
      message: OOM.message,
      boundary: "policy",
      retryable: false,
    });
    expect(messagesOf(finished)).toEqual(["system", "user", "assistant"]);
    expect(t.events).toEqual(["attach s1", "end s1"]);
    expect(watching).toBe("nothing");
  });
});

test("a kind that this version does not know fails the job, not the thread", async () => {
  const t = setup();
  const { error } = await t.run(startOf("run", { taskKind: "gone" }));
  expect(error?.code).toBe("unknown_task_kind");
  expect(t.events).toEqual(["end s1"]);
});

import { describe, expect, test } from "bun:test";
import { abortable, atMost } from "../../src/lib/abortable.ts";

const NEVER = new Promise<never>(() => {});

function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => `no failure but ${value}`,
    (error) => error,
  );
}

describe("abortable", () => {
  test("is what the promise is, with or without signals", async () => {
    const { signal } = new AbortController();
    expect(await abortable(Promise.resolve(1))).toBe(1);
    expect(await abortable(Promise.resolve(2), signal, undefined)).toBe(2);
    expect(await failure(abortable(Promise.reject("no"), signal))).toBe("no");
  });

  test("ends with the reason of whichever signal aborts", async () => {
    for (const chosen of [0, 1]) {
      const controllers = [new AbortController(), new AbortController()];
      const wait = abortable(NEVER, ...controllers.map(({ signal }) => signal));
      controllers[chosen]?.abort(`reason ${chosen}`);
      expect(await failure(wait)).toBe(`reason ${chosen}`);
    }
  });

  test("ends at once where a signal has aborted before, and drops what the promise fails with", async () => {
    const aborted = AbortSignal.abort("before");
    expect(await failure(abortable(Promise.reject("unseen"), aborted))).toBe("before");
    expect(await failure(abortable(NEVER, new AbortController().signal, aborted))).toBe("before");
  });

  test("an abort after the promise has settled changes nothing", async () => {
    const controller = new AbortController();
    const settled = abortable(Promise.resolve(1), controller.signal);
    await settled;
    controller.abort("late");
    expect(await settled).toBe(1);
  });

  test("leaves no listener on a signal that outlives it", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    await abortable(Promise.resolve(1), signal);
    await failure(abortable(Promise.reject("no"), signal));
    expect(listeners).toBe(0);
  });
});

describe("atMost", () => {
  test("is what the promise is where that is in time", async () => {
    expect(await atMost(Promise.resolve(1), 60_000, "late")).toBe(1);
    expect(await failure(atMost(Promise.reject("no"), 60_000, "late"))).toBe("no");
  });

  test("is the fallback where the promise takes longer", async () => {
    expect(await atMost(NEVER, 1, "late")).toBe("late");
  });
});

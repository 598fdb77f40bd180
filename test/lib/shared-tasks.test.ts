import { expect, test } from "bun:test";
import { SharedTasks } from "../../src/lib/shared-tasks.ts";

function setup() {
  const tasks = new SharedTasks<string>();
  const started: AbortSignal[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = (key: string, signal = new AbortController().signal) =>
    tasks.run(key, signal, (shared) => {
      started.push(shared);
      return promise;
    });
  return { call, started, resolve, reject };
}

test("calls for one key share a run and its result; another key has its own", async () => {
  const { call, started, resolve } = setup();
  const calls = [call("a"), call("a"), call("b")];
  resolve("done");
  expect(await Promise.all(calls)).toEqual(["done", "done", "done"]);
  expect(started).toHaveLength(2);
});

test("a run that failed is not remembered", async () => {
  const { call, started, reject } = setup();
  const calls = [call("a"), call("a")];
  reject(new Error("broken"));
  const seen = calls.map((each) => each.catch((error) => error.message));
  expect(await Promise.all(seen)).toEqual(["broken", "broken"]);
  await call("a").catch(() => {});
  expect(started).toHaveLength(2);
});

test("a caller who leaves does not end the run, the last one does", async () => {
  const { call, started } = setup();
  const [first, second] = [new AbortController(), new AbortController()];
  const calls = [call("a", first.signal), call("a", second.signal)];
  first.abort("first");
  expect(await calls[0]?.catch((why) => why)).toBe("first");
  expect(started.map(({ aborted }) => aborted)).toEqual([false]);
  second.abort("second");
  expect(await calls[1]?.catch((why) => why)).toBe("second");
  expect(started.map(({ aborted }) => aborted)).toEqual([true]);
});

import { expect, test } from "bun:test";
import { TASK_KINDS, taskKindByName, taskKindOf } from "../../src/tasks/registry.ts";
import { failureOf } from "../support/failure.ts";

test("a row's data_source chooses its task kind", () => {
  const sources = ["math", "deepscaler", "echo", "taco", "deepcoder", "deepcoder_primeintellect"];
  expect(sources.map((source) => taskKindOf(source).name)).toEqual([
    ...["math", "math", "echo"],
    ...["code", "code", "code"],
  ]);
});

test("a data_source that no kind has is refused with the one that was meant, or those that there are", async () => {
  expect(await failureOf(() => taskKindOf("Math"))).toEqual({
    code: "unknown_task_kind",
    message: 'there is no task kind for "Math"',
    boundary: "client",
    retryable: false,
    field: "instance.data_source",
    mend: 'did you mean "math"?',
  });
  const { mend } = await failureOf(() => taskKindOf("something of mine"));
  expect(mend).toMatch(/^use one of: math, deepscaler, .*echo/);
});

test("no data_source means two kinds, and no name does", () => {
  const sources = TASK_KINDS.flatMap((kind) => kind.dataSources);
  expect(new Set(sources).size).toBe(sources.length);
  expect(new Set(TASK_KINDS.map((kind) => kind.name)).size).toBe(TASK_KINDS.length);
});

test("a kind is found by its name; one that a newer version has stored is told apart", async () => {
  expect(TASK_KINDS.map((kind) => taskKindByName(kind.name))).toEqual([...TASK_KINDS]);
  const failure = await failureOf(() => taskKindByName("deepscaler"));
  expect(failure.code).toBe("unknown_task_kind");
});

import { describe, expect, test } from "bun:test";
import { acceptWith } from "../../src/cli/accept.ts";
import { loadConfig } from "../../src/config/config.ts";
import { failureOf } from "../support/failure.ts";

const MATH = {
  data_source: "deepscaler",
  prompt: [{ role: "user", content: "What is 1+1?" }],
  reward_model: { ground_truth: "2" },
};

function setup(flags: Record<string, unknown> = {}) {
  return acceptWith(loadConfig({ env: {}, flags }), () => {});
}

describe("an accepted rollout", () => {
  test("becomes a job of its kind, with the server's limits where it names none", () => {
    const accept = setup({ image: "/i", run_limit_ms: 5, eval_limit_ms: 5, total_limit_ms: 9 });
    const request = {
      id: "a",
      instance: MATH,
      sampling: { seed: 1 },
      limits: { run_ms: 6, total_ms: 7 },
      num_attempts: 2,
    };
    expect(accept(request)).toEqual({
      madeId: false,
      job: {
        id: "a",
        limits: { initMs: 120_000, runMs: 6, evalMs: 5, totalMs: 7 },
        numAttempts: 2,
        evalFromRecord: true,
      },
      row: {
        bodySha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        taskKind: "math",
        usesSandbox: true,
        needsBackend: true,
        image: null,
        scoredInFresh: false,
        instance: JSON.stringify(MATH),
        options: '{"sampling":{"seed":1}}',
      },
    });
  });

  test("without an id gets one of its own", () => {
    const accept = setup();
    const [a, b] = [1, 2].map(() => accept({ instance: { data_source: "echo" } }).job.id);
    expect(a).toMatch(/^[0-9a-f-]{36}$/);
    expect(a).not.toBe(b);
  });

  test("has the same body hash for the same body, whatever its id and the order of its keys", () => {
    const accept = setup();
    const hash = (request: Parameters<typeof accept>[0]) => accept(request).row.bodySha256;
    const first = hash({ id: "a", instance: { data_source: "echo", reward: 1, run_ms: 2 } });
    expect(hash({ instance: { run_ms: 2, reward: 1, data_source: "echo" } })).toBe(first);
    expect(hash({ instance: { data_source: "echo", reward: 0, run_ms: 2 } })).not.toBe(first);
    const limited = { data_source: "echo", reward: 1, run_ms: 2 };
    expect(hash({ instance: limited, limits: { run_ms: 1 } })).not.toBe(first);
  });
});

describe("a rollout is refused", () => {
  test("that needs an image where neither it nor the server has one", async () => {
    expect(await failureOf(() => setup()({ instance: MATH }))).toEqual({
      code: "invalid_field",
      message: "a math rollout needs an image, and the server has no default one",
      boundary: "client",
      retryable: false,
      field: "image",
      mend: "set `image` in the rollout, or --image IMAGE (after `source .tools/env`, ROLLOUTD_IMAGE is the base image)",
    });
    expect(setup()({ instance: MATH, image: "/i" }).row.options).toBe('{"image":"/i"}');
  });

  test("whose row its task kind can't read, or whose kind nobody knows", async () => {
    const refused = [{ ...MATH, prompt: null }, { data_source: "chess" }].map((instance) =>
      failureOf(() => setup({ image: "/i" })({ instance })),
    );
    expect((await Promise.all(refused)).map(({ code, field }) => [code, field])).toEqual([
      ["invalid_field", "instance.prompt"],
      ["unknown_task_kind", "instance.data_source"],
    ]);
  });
});

describe("a task folder's row", () => {
  const task = (toml: string, more: object = {}) => ({
    instance: {
      ...{ data_source: "harbor", instruction: "x", task_toml: toml },
      tests: { "test.sh": btoa("true") },
      ...more,
    },
  });

  test("with a Dockerfile has no use for the service's default image", async () => {
    const request = task("", { dockerfile: "FROM debian\nRUN true\n" });
    const accept = setup({ image: "/i" });
    expect(await failureOf(async () => accept(request))).toMatchObject({
      code: "invalid_field",
      field: "instance",
      mend: expect.stringContaining("--task-images harbor=IMAGE"),
    });
    expect(accept({ ...request, image: "/own" }).row.image).toBe("/own");
    const named = setup({ image: "/i", task_images: "harbor=/tasks.sif" });
    expect(named(request).row.image).toBe("/tasks.sif");
  });

  test("that asks for more memory than a sandbox has is refused", async () => {
    const accept = setup({ image: "/i", sandbox_memory_bytes: 1024 ** 3 });
    expect(accept(task("[environment]\nmemory_mb = 1024\n")).row.taskKind).toBe("harbor");
    expect(
      await failureOf(async () => accept(task("[environment]\nmemory_mb = 1025\n"))),
    ).toMatchObject({
      code: "invalid_field",
      mend: "start the service with a larger --sandbox-memory-bytes",
    });
  });
});

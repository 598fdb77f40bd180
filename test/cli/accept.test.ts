import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { acceptWith } from "../../src/cli/accept.ts";
import { loadConfig } from "../../src/config/config.ts";
import { parseKeepingDigits } from "../../src/lib/exact-json.ts";
import { parseBody } from "../../src/protocol/parse.ts";
import { rolloutRequestSchema } from "../../src/protocol/rollout.ts";
import { code } from "../../src/tasks/code/code.ts";
import { rowFor } from "../../src/tasks/row-for.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";

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

  test("has a limit of EVAL's beyond what its row lets its tests take", () => {
    const accept = setup({ image: "/i" });
    const verifier = { command: "true", timeout_ms: 1_200_000 };
    const instance = { data_source: "command", instruction: "…", verifier };
    expect(accept({ instance }).job.limits.evalMs).toBeGreaterThan(2 * 1_200_000);
    const asked = (eval_ms: number) => accept({ instance, limits: { eval_ms } }).job.limits.evalMs;
    expect(asked(1_230_000)).toBe(1_230_000);
    expect(failureOf(async () => asked(1_200_000))).resolves.toMatchObject({
      code: "invalid_field",
      field: "limits.eval_ms",
      mend: expect.stringContaining("1230000"),
    });
  });

  test("keeps every digit of its row's numbers, and its kind reads them where it wants to", () => {
    const accept = setup({ image: "/i" });
    const text =
      '{"data_source":"code","prompt":"…","tests":{"fn_name":"f","inputs":[[17]],"outputs":[100000000000000001]}}';
    const request = parseBody(rolloutRequestSchema, parseKeepingDigits(`{"instance":${text}}`));
    const { row } = accept(request);
    expect(row.instance).toBe(text);
    const [hash, otherHash] = [text, text.replace("01]", "02]")].map((each) => {
      const body = parseBody(rolloutRequestSchema, parseKeepingDigits(`{"instance":${each}}`));
      return accept(body).row.bodySha256;
    });
    expect(hash).not.toBe(otherHash);
    const [first] = code.parse(rowFor(code, JSON.parse(text), row.instance)).tests;
    expect(first).toMatchObject({ expected: 100000000000000001n });
    const math = JSON.stringify(MATH).replace('"2"', "100000000000000001");
    const plain = parseBody(rolloutRequestSchema, parseKeepingDigits(`{"instance":${math}}`));
    expect(accept(plain).row.taskKind).toBe("math");
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
    const accept = setup({ image_dirs: "/images" });
    expect(accept({ instance: MATH, image: "/images/i" }).row.options).toBe(
      '{"image":"/images/i"}',
    );
  });

  test("whose image lies where the operator allows none, however it is named", async () => {
    using dir = tempDir();
    mkdirSync(dir.file("images"));
    mkdirSync(dir.file("images-2"));
    symlinkSync("/etc", dir.file("images/out"));
    symlinkSync(dir.file("images-2"), dir.file("images/sibling"));
    const task_images = `swe=${dir.file("swe")}/{instance_id}.sif`;
    const image_cache = dir.file("cache");
    const flags = { image: "/default", image_dirs: dir.file("images"), task_images, image_cache };
    const accept = setup({ ...flags, registries: "docker.io,lab:5000" });
    const codeOf = async (image: string) => {
      try {
        return accept({ instance: MATH, image }).row.image;
      } catch (error) {
        const { code, field } = await failureOf(() => Promise.reject(error));
        return [code, field];
      }
    };
    const allowed = ["a-name", "/default", dir.file("images/a.sif"), dir.file("swe/x.sif")];
    const hosted = ["docker://python:3", "docker://docker.io/a/b", "oras://lab:5000/x/y:1"];
    const archive = `docker-archive:${dir.file("images/b.tar")}`;
    for (const image of [...allowed, ...hosted, archive])
      expect([image, await codeOf(image)]).toEqual([image, image]);
    const outside = [
      ...["/", "/etc", "/default/x", dir.path, dir.file("images-2"), dir.file("images/../x")],
      ...[
        dir.file("images/out"),
        dir.file("images/out/ssh"),
        dir.file("images/sibling"),
        "/proc/1/root",
      ],
      ...[`oci-archive:${dir.file("b.tar")}`, `docker-archive:${dir.file("images/../../b.tar")}`],
    ];
    for (const image of outside)
      expect([image, await codeOf(image)]).toEqual([image, ["invalid_field", "image"]]);
    for (const image of [
      "docker://ghcr.io/a/b",
      "docker://lab:5000@evil/x",
      "docker://lab:5001/x/y",
      "oras://localhost/x",
    ])
      expect([image, (await codeOf(image))?.[1]]).toEqual([image, "image"]);
    const row = { data_source: "swebench", instance_id: "../../etc/x" };
    const named = await failureOf(() => accept({ instance: row } as never));
    expect(named.code).toBe("invalid_field");
  });

  test("of each kind, where it is its row that names such an image", async () => {
    using dir = tempDir();
    const accept = setup({ image_cache: dir.file("cache") });
    const command = { instruction: "x", verifier: { command: "true" } };
    const harbor = { task_toml: "", instruction: "x", tests: { "test.sh": "eA==" } };
    const swe = {
      instance_id: "a__b-1",
      repo: "django/django",
      base_commit: "c",
      patch: "",
      test_patch: "",
    };
    const more = { problem_statement: "x", FAIL_TO_PASS: ["t"], PASS_TO_PASS: [], version: "1" };
    const kinds = {
      command: { data_source: "command", ...command },
      harbor: { data_source: "harbor", ...harbor },
      swebench: { data_source: "swebench", ...swe, ...more },
    };
    for (const [kind, row] of Object.entries(kinds)) {
      for (const image of ["/etc", "docker://10.0.0.1:8500/x/y:1", "docker-archive:/etc/shadow"]) {
        const failed = await failureOf(() => accept({ instance: { ...row, image } }));
        const told = `${failed.message} ${failed.mend}`;
        expect([kind, image, failed.field, told]).toEqual([
          ...[kind, image, "instance"],
          expect.stringMatching(/--image-dirs|--registries|is no reference/),
        ]);
      }
    }
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
    const own = setup({ image: "/i", image_dirs: "/own" });
    expect(own({ ...request, image: "/own/task.sif" }).row.image).toBe("/own/task.sif");
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

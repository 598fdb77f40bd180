import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { mathRow, run, serve, simulate } from "../support/binary.ts";
import { python } from "../support/python.ts";
import { tempDir } from "../support/temp-dir.ts";

const CHECK = resolve(import.meta.dir, "../clients/client_check.py");
const LIFE = resolve(import.meta.dir, "../clients/client_life_check.py");

const SCRIPTS = [
  { match: "six", variants: [[{ content: "It is \\boxed{42}." }]] },
  { match: "two", variants: [[{ content: "It is \\boxed{5}." }]] },
  {
    match: "three",
    variants: [[{ content: "It is \\boxed{9}." }], [{ content: "It is \\boxed{6}." }]],
  },
];
const ROWS = [
  mathRow("What is seven times six?", "42"),
  mathRow("What is two plus two?", "4"),
  mathRow("What is three times three?", "9"),
].map((row) => ({ ...row, data_source: "reasoning", verifier: "math" }));

/** Complete, with two groups of one right and one wrong answer. */
const BATCH = [
  "complete",
  [
    [0, 1],
    [0, 1],
  ],
];

async function setup() {
  const dir = tempDir();
  const model = dir.file("model");
  const engine = await simulate(dir.path, SCRIPTS, ["--model-dir", model]);
  const service = await serve(dir.file("data"), [
    ...["--backend", engine.url, "--model-dir", model],
  ]);
  const { stdout } = await run(["client", "python"]);
  await Bun.write(dir.file("client/rolloutd.py"), stdout);
  return {
    dir,
    service,
    /** What the check printed, having talked to `address`. */
    check: async (address: string) => {
      const args = [CHECK, address, JSON.stringify(ROWS)];
      const { stdout: printed, stderr, exitCode } = await python(args, [dir.file("client")]);
      expect([exitCode, stderr]).toEqual([0, ""]);
      return JSON.parse(printed);
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

describe("the Python client that the binary prints", () => {
  test.each(["url", "socket"] as const)(
    "submits, waits, follows, trains on what comes back and cancels, by %s",
    async (way) => {
      await using t = await setup();
      const { sync, async: concurrent } = await t.check(t.service[way]);
      const { sample, ...rest } = sync;
      expect(rest).toEqual({
        reward: 1,
        many: { "sync-0": 1, "sync-1": 0 },
        again: true,
        created: false,
        refused: [400, "unknown_task_kind", "rollouts[0].instance.data_source"],
        finished: ["sync-one", expect.stringMatching(/^sync-[01]$/)],
        backends: 1,
        trajectories: ["group-0", "group-1", "sync-0", "sync-1", "sync-one"],
        group: [true, false, [1, 1], [0, 0]],
        batch: BATCH,
        weights: ["v1", "drain", "v1", null],
      });
      expect(concurrent.group).toEqual(rest.group);
      expect([concurrent.batch, concurrent.weights]).toEqual([BATCH, "v2"]);
      expect(sample.ids.length).toBe(sample.prompt + sample.sampled);
      expect(sample.negative).toBeGreaterThan(0);
      expect(concurrent.rewards).toEqual([1, 0]);
      expect(concurrent.many).toEqual({ "amany-0": 1, "amany-1": 0 });
      expect(concurrent.samples[0].ids).toEqual(sample.ids);
      expect(concurrent.held).toBe("cancelled");
    },
  );

  test("bears forks, signals, threads, event loops, and connections that were closed", async () => {
    using dir = tempDir();
    const { stdout } = await run(["client", "python"]);
    await Bun.write(dir.file("rolloutd.py"), stdout);
    await using service = await serve(dir.file("data"));
    const finished = await python([LIFE, service.url], [dir.path]);
    expect([finished.exitCode, finished.stderr]).toEqual([0, ""]);
    expect(JSON.parse(finished.stdout)).toEqual({
      forked: true,
      forked_from_a_loop: true,
      one_loop_after_another: [1, 1],
      pickled: true,
      interrupted: ["cancelled", "cancelled", true],
      refused_half_way: ["unknown_task_kind", "cancelled"],
      cancelled_group: [true, "cancelled"],
      cancelled_at_once: ["cancelled"],
      many_at_once: true,
      left_early: true,
      submits: [true, ["ValueError", "TypeError"]],
      closed_meanwhile: true,
      syntax: true,
    });
  });

  test("says what is not there, and where", async () => {
    using dir = tempDir();
    const { stdout } = await run(["client", "python"]);
    await Bun.write(dir.file("rolloutd.py"), stdout);
    const code = `import rolloutd
try: rolloutd.Client("unix:${dir.file("none.sock")}", patience_s=0).status()
except rolloutd.Unreachable as error: print(error.code, "none.sock" in str(error))`;
    expect((await python(["-c", code], [dir.path])).stdout).toBe("server_unreachable True\n");
    const patient = code.replace("patience_s=0", "patience_s=0.5");
    const { stderr } = await python(["-c", patient], [dir.path]);
    // Once, however often it is tried: a trainer that waits in silence looks like one that hangs.
    expect(stderr).toMatch(/^rolloutd does not answer at .*; trying for 0\.5 s\n$/);
    expect(await run(["client", "ruby"])).toMatchObject({ exitCode: 2, stdout: "" });
  });
});

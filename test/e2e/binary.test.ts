import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { RolloutResult } from "../../src/cli/run-collect.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import { folderOf } from "../inference/tokens/models.ts";
import {
  BINARY,
  driverFlags,
  environment,
  mathRow,
  run,
  sandboxFlags,
  serve,
  simulate,
  start,
  turn,
} from "../support/binary.ts";
import { jsonServer } from "../support/json-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const cell = (code: string) => turn("execute_ipython_cell", { code });
const finish = (message: string) => turn("finish", { message });

const SCRIPTS = [
  {
    match: "seven times six",
    variants: [
      [cell("x = 7 * 6\nprint(x)"), finish("It is \\boxed{{{observation}}}.")],
      [finish("It is \\boxed{41}.")],
    ],
  },
  { match: "never ends", variants: [[cell("while True: pass")]] },
  { match: "take your time", variants: [[cell("import time; time.sleep(600)")]] },
  { match: "no engine", variants: [] as never[][] },
];

const ROWS = [
  mathRow("What is seven times six?", "42"),
  mathRow("What never ends?", "1"),
  mathRow("Please take your time.", "1"),
];

/** Folders of sandboxes; what is only waiting to be deleted is not one. */
const sandboxesIn = (data: string) =>
  readdirSync(join(data, "sandboxes")).filter((name) => name !== ".trash");

async function setup(driver: "apptainer" | "bubblewrap" = "apptainer") {
  const dir = tempDir();
  const engine = await simulate(dir.path, SCRIPTS.slice(0, 3));
  const data = dir.file("data");
  const service = await serve(data, [
    ...[...sandboxFlags(), ...driverFlags(driver)],
    // Only sandboxes of jobs are to be found.
    ...["--warm-sandboxes", "0"],
    ...["--backend", engine.url],
  ]);
  const rows = dir.file("rows.jsonl");
  await Bun.write(rows, ROWS.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://localhost${path}`, { unix: service.socket });
    return (await response.json()) as T;
  };
  return {
    dir,
    data,
    engine,
    service,
    rows,
    get,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

/** What `rolloutd run` with a service of its own has on the disk. */
function foldersOf(pid: number): string[] {
  return readdirSync("/var/tmp").filter((name) => name.startsWith(`rolloutd-run-${pid}-`));
}

describe("the compiled binary, run from an unrelated directory", () => {
  test.each(["apptainer", "bubblewrap"] as const)(
    "runs rows in sandboxes of %s: right and wrong answers, a time limit, a cancel",
    async (driver) => {
      await using t = await setup(driver);
      const out = t.dir.file("out.jsonl");
      const running = run(
        ["run", t.rows, "--server", t.service.socket, "--samples", "2", "--id-prefix", "r"].concat([
          ...["--run-limit-ms", "4000", "--out", out, "--show", "1"],
        ]),
      );
      for (const id of ["r-2-0", "r-2-1"]) {
        await waitFor(async () => {
          const view = await t.get<RolloutView>(`/v1/rollouts/${id}`);
          return view.stage === "run" && view.state === "active";
        }, `${id} to run`);
        const cancelled = await run(["jobs", "cancel", id, "--server", t.service.url]);
        expect([cancelled.exitCode, cancelled.stderr]).toEqual([0, ""]);
      }
      const { stdout, stderr, exitCode } = await running;
      expect(exitCode).toBe(0);
      expect(stdout).toContain("2 of 6 rollouts have a reward, mean 0.500; 4 have none");
      expect(stdout).toContain("2 × deadline_exceeded in run: ");
      expect(stdout).toContain("verdict   equal_");
      expect(stderr).toContain("6/6");
      const results = (await Bun.file(out).text())
        .trim()
        .split("\n")
        .map((line): RolloutResult => JSON.parse(line))
        .toSorted((a, b) => a.row - b.row || a.sample - b.sample);
      const seen = results.map(({ id, state, reward, error }: RolloutResult) => [
        ...[id, state, reward, error?.code ?? null, error?.stage ?? null],
      ]);
      expect(seen).toEqual([
        ["r-0-0", "succeeded", 1, null, null],
        ["r-0-1", "succeeded", 0, null, null],
        ["r-1-0", "failed", null, "deadline_exceeded", "run"],
        ["r-1-1", "failed", null, "deadline_exceeded", "run"],
        ["r-2-0", "cancelled", null, "cancelled", "run"],
        ["r-2-1", "cancelled", null, "cancelled", "run"],
      ]);
      expect(results.map(({ isolation }: RolloutResult) => isolation)).toEqual(Array(6).fill("A"));
      const [right, , overdue, , cancelled] = results as RolloutResult[];
      expect(right?.trajectory?.messages.map(({ role }) => role)).toEqual([
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
      ]);
      expect(right?.trajectory?.messages[3]?.content).toStartWith("42\n[Jupyter current");
      expect(right?.trajectory?.turns.every(({ engine_ms }) => engine_ms > 0)).toBe(true);
      // What was recorded before the end is returned.
      expect(overdue?.trajectory?.messages.at(-1)?.role).toBe("assistant");
      expect(cancelled?.trajectory?.messages.at(-1)?.role).toBe("assistant");
      expect(sandboxesIn(t.data)).toEqual([]);
    },
  );

  test("run starts a service of its own, which is gone with it", async () => {
    using dir = tempDir();
    await using engine = await simulate(dir.path, SCRIPTS.slice(0, 1));
    const rows = dir.file("rows.jsonl");
    await Bun.write(rows, `${JSON.stringify(ROWS[0])}\n`);
    const pids: number[] = [];
    const result = await run(
      ["run", rows, "--backend", engine.url, ...sandboxFlags(), "--json"].concat([
        ...["--out", dir.file("out.jsonl")],
      ]),
      { started: (pid) => void pids.push(pid) },
    );
    expect(result.exitCode).toBe(0);
    expect(JSON.parse(result.stdout)).toMatchObject({ row: 0, sample: 0, reward: 1 });
    expect(pids.map(foldersOf)).toEqual([[]]);
  });

  test("run refuses a file for its last row before a rollout begins, and names the line", async () => {
    await using t = await setup();
    const bad = { data_source: "math", problem: "What is 2+2?" };
    await Bun.write(t.rows, [...ROWS, bad].map((row) => `${JSON.stringify(row)}\n`).join(""));
    const flags = ["--server", t.service.socket, "--samples", "2", "--out", t.dir.file("o")];
    const refused = await run(["run", t.rows, ...flags]);
    expect([refused.exitCode, refused.stdout]).toEqual([2, ""]);
    expect(refused.stderr).toContain(`${t.rows}:4: reward_model: is missing`);
    expect(await t.get<{ unfinished: number }>("/v1/status")).toMatchObject({ unfinished: 0 });
  });

  test("run ends when its own service can't start, with the reason, and leaves no folder", async () => {
    using dir = tempDir();
    await Bun.write(dir.file("rows.jsonl"), `${JSON.stringify({ data_source: "echo" })}\n`);
    using engine = jsonServer(() => new Response("{}", { status: 401 }));
    const args = ["run", dir.file("rows.jsonl"), "--backend", `${engine.url}/v1`];
    const pids: number[] = [];
    const started = (pid: number) => void pids.push(pid);
    const refused = await run([...args, "--out", dir.file("o")], { started });
    expect([refused.exitCode, refused.stdout]).toEqual([2, ""]);
    expect(existsSync(dir.file("o"))).toBe(false);
    expect(refused.stderr).toContain("answered 401");
    expect(pids.map(foldersOf)).toEqual([[]]);
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "run that gets %s cancels what is left, keeps what had ended, and can be gone on with",
    async (signal) => {
      await using t = await setup();
      const rows = [
        { data_source: "echo", reward: 1 },
        { data_source: "echo", run_ms: 600_000 },
      ];
      await Bun.write(t.rows, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
      const out = t.dir.file("out.jsonl");
      const flags = ["--server", t.service.socket, "--id-prefix", "r", "--out", out];
      const child = Bun.spawn([BINARY, "run", t.rows, ...flags], { stderr: "pipe" });
      const ended = async () => {
        const lines = existsSync(out) ? (await Bun.file(out).text()).trim().split("\n") : [];
        return lines.flatMap((line) => (line ? [(JSON.parse(line) as RolloutResult).state] : []));
      };
      await waitFor(async () => (await ended()).length === 1, "the first result in the file");
      child.kill(signal);
      expect(await child.exited).toBe(signal === "SIGINT" ? 130 : 143);
      expect(await ended()).toEqual(["succeeded", "cancelled"]);
      const told = await new Response(child.stderr).text();
      expect(told).toContain("cancelling what is left");
      expect(told).toContain(`go on with: --resume ${out}`);
      const resumed = ["--server", t.service.socket, "--resume", out];
      const otherwise = await run(["run", t.rows, ...resumed, "--run-limit-ms", "200"]);
      expect([otherwise.exitCode, await ended()]).toEqual([2, ["succeeded", "cancelled"]]);
      expect(otherwise.stderr).toContain("was made with no run_limit_ms");
      const fewer = await run(["run", t.rows, ...resumed, "--limit", "1"]);
      expect([fewer.exitCode, await ended()]).toEqual([0, ["succeeded", "cancelled"]]);
      const anew = await run(["run", t.rows, "--server", t.service.socket, "--out", out]);
      expect([anew.exitCode, await ended()]).toEqual([2, ["succeeded", "cancelled"]]);
      const running = Bun.spawn([BINARY, "run", t.rows, ...resumed], { stderr: "pipe" });
      await waitFor(async () => {
        const [last] = (await t.get<{ rollouts: RolloutView[] }>("/v1/rollouts?state=active"))
          .rollouts;
        return last !== undefined;
      }, "the second rollout to run again");
      const beside = await run(["run", t.rows, ...resumed]);
      expect([beside.exitCode, await ended()]).toEqual([2, ["succeeded", "cancelled"]]);
      expect(beside.stderr).toContain("is another run's");
      running.kill(signal);
      expect(await running.exited).toBe(signal === "SIGINT" ? 130 : 143);
      expect(await new Response(running.stderr).text()).toContain("1 of 2 results stand");
      expect(await ended()).toEqual(["succeeded", "cancelled"]);
    },
  );

  test("by token ids: the trajectory has what was sampled, with mask and log-probabilities", async () => {
    using dir = tempDir();
    const folder = dir.file("model");
    await using engine = await simulate(dir.path, SCRIPTS.slice(0, 1), ["--model-dir", folder]);
    const rows = dir.file("rows.jsonl");
    await Bun.write(rows, `${JSON.stringify(ROWS[0])}\n`);
    const out = ["--json", "--out", dir.file("out.jsonl")];
    const backend = ["--backend", engine.url, "--model-dir", folder, ...sandboxFlags()];
    const { stdout, exitCode } = await run(["run", rows, ...backend, ...out]);
    expect(exitCode).toBe(0);
    const { reward, trajectory } = JSON.parse(stdout) as RolloutResult;
    expect([reward, trajectory?.token_ids, trajectory?.segments.length]).toEqual([1, "exact", 1]);
    const [segment] = trajectory?.segments ?? [];
    const sampled = segment?.spans.filter(({ mask }) => mask === 1) ?? [];
    const count = sampled.reduce((sum, { start, end }) => sum + end - start, 0);
    expect([sampled.length, segment?.logprobs?.length]).toEqual([2, count]);
  });

  test("P5: an engine that refuses is a failure of the engine, never a reward", async () => {
    await using t = await setup();
    const rows = t.dir.file("other.jsonl");
    await Bun.write(rows, `${JSON.stringify(mathRow("No script matches this.", "1"))}\n`);
    const flags = ["--server", t.service.socket, "--json", "--out", t.dir.file("out.jsonl")];
    const { stdout, exitCode } = await run(["run", rows, ...flags]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      state: "failed",
      reward: null,
      error: { code: "engine_refused", boundary: "engine", stage: "run" },
    });
  });

  test("an image that lacks what the task needs is the sandbox's failure, named", async () => {
    await using t = await setup();
    const response = await fetch("http://localhost/v1/rollouts?wait_ms=60000", {
      unix: t.service.socket,
      method: "POST",
      body: JSON.stringify({ instance: ROWS[0], image: "/nowhere/rootfs" }),
    });
    expect(await response.json()).toMatchObject({
      state: "failed",
      stage: "init",
      reward: null,
      error: { code: "image_not_found", boundary: "sandbox", stage: "init" },
    });
  });

  test("P11: SIGTERM drains: the exit status says that work was cut, no sandbox is left, and the next start goes on", async () => {
    await using t = await setup();
    const body = { id: "slow", instance: ROWS[2] };
    const submitted = await fetch("http://localhost/v1/rollouts", {
      unix: t.service.socket,
      method: "POST",
      body: JSON.stringify(body),
    });
    expect(submitted.status).toBe(201);
    await waitFor(async () => {
      const view = await t.get<RolloutView>("/v1/rollouts/slow");
      return view.stage === "run" && view.state === "active";
    }, "the rollout to run");
    t.service.signal("SIGTERM");
    t.service.signal("SIGINT");
    expect(await t.service.exited).toBe(75);
    expect(readdirSync(join(t.data, "sandboxes"))).toEqual([]);
    expect(existsSync(t.service.socket)).toBe(false);
    await using next = await serve(t.data, [...sandboxFlags(), "--backend", t.engine.url]);
    const again = await waitFor(async () => {
      const url = "http://localhost/v1/rollouts/slow";
      const view = (await (await fetch(url, { unix: next.socket })).json()) as RolloutView;
      return view.stage === "run" && view.state === "active" && view;
    }, "the rollout to run again");
    expect(again.attempt).toBe(2);
  });
});

describe("the command line", () => {
  test("ends quietly when its reader has read enough", async () => {
    const command = `"${BINARY}" schema openapi | head -c 1; exit "\${PIPESTATUS[0]}"`;
    const child = Bun.spawn(["bash", "-c", command], { stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([stdout, stderr, await child.exited]).toEqual(["{", "", 0]);
  });

  test("says what is wrong in one sentence, with the exit code of its kind", async () => {
    using dir = tempDir();
    const nobody = dir.file("nobody.sock");
    const cases: [string[], number, string][] = [
      [["nonsense"], 2, 'there is no command "nonsense"'],
      [["jobs"], 2, "an action is missing"],
      [["jobs", "list", "--limit", "x"], 2, "--limit takes a whole number"],
      [["jobs", "list", "--nope"], 2, "--nope"],
      [["jobs", "list", "--server", nobody], 69, `no rolloutd answers at ${nobody}`],
      [["run"], 2, "one file of rows is needed"],
      [["run", "/r", "--server", nobody, "--group-size", "4"], 2, "goes with --informative N"],
      [["run", "/r", "--server", nobody, "--informative", "4"], 2, "--group-size takes a whole"],
      [["run", "/nowhere.jsonl", "--server", nobody], 2, "/nowhere.jsonl can't be read"],
      [["serve", "--port", "x"], 2, "--port"],
      [["serve", "--driver", "host", "--port", "0"], 2, "driver=host isolates nothing"],
      [["serve", "--data-dir", "/proc/nope", "--port", "0"], 2, "--data-dir /proc/nope: "],
      [["simulate", "--policy", "/nowhere"], 2, "/nowhere"],
      [["verify-template"], 2, "name a model folder"],
      [["verify-template", "/nowhere"], 2, "there is no folder /nowhere"],
    ];
    for (const [args, exitCode, text] of cases) {
      const result = await run(args);
      expect([args.join(" "), result.exitCode]).toEqual([args.join(" "), exitCode]);
      expect(result.stderr).toContain(text);
      expect(result.stdout).toBe("");
    }
  });

  test("lists and cancels what has a label, and nothing else", async () => {
    using dir = tempDir();
    await using service = await serve(dir.file("data"), ["--drain-ms", "1"]);
    const server = ["--server", service.socket];
    const instance = { data_source: "echo", run_ms: 600_000 };
    const rollouts = ["a", "b", "other"].map((id) => {
      return { id, instance, labels: { step: id === "other" ? "8" : "7" } };
    });
    await fetch("http://localhost/v1/rollouts", {
      unix: service.socket,
      method: "POST",
      body: JSON.stringify({ rollouts }),
    });
    const ids = async (...flags: string[]) => {
      const { stdout } = await run(["jobs", "list", "--json", ...flags, ...server]);
      return (JSON.parse(stdout) as RolloutView[]).map(({ id }) => id);
    };
    expect(await ids("--label", "step:7")).toEqual(["a", "b"]);
    expect(await ids("--label", "step:7", "--kind", "math")).toEqual([]);
    const cancelled = await run(["jobs", "cancel", "--label", "step:7", ...server]);
    expect(cancelled).toEqual({ exitCode: 0, stdout: "2 cancelled\n", stderr: "" });
    await run(["jobs", "watch", "b", ...server]);
    expect(await ids("--state", "pending,active")).toEqual(["other"]);
  });

  test("has help for itself and for each command, on standard output", async () => {
    const overview = await run(["--help"]);
    expect([overview.exitCode, overview.stderr]).toEqual([0, ""]);
    const names = ["serve", "run", "jobs", "backends", "simulate", "verify-template", "doctor"];
    for (const name of [...names, "version"]) {
      expect(overview.stdout).toContain(`  ${name}`);
      const help = await run([name, "--help"]);
      expect([name, help.exitCode, help.stderr]).toEqual([name, 0, ""]);
      expect(help.stdout).toStartWith(`Usage: rolloutd ${name}`);
    }
  });

  test("verifies a real model's chat template", async () => {
    const folder = folderOf("qwen3");
    const shown = await run(["verify-template", folder]);
    expect([shown.exitCode, shown.stderr]).toEqual([0, ""]);
    expect(shown.stdout).toStartWith("Tool calls are read as hermes");
    expect(shown.stdout).toContain("equal    thinking on: tool calls");
    const { stdout } = await run(["verify-template", "--json", folder]);
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toEqual({
      case: "one question",
      verdict: "equal",
      calls: 1,
      detail: null,
    });
  });

  test("version and doctor have output for machines", async () => {
    using dir = tempDir();
    const version = await run(["version", "--json"]);
    expect(JSON.parse(version.stdout)).toMatchObject({ bun: Bun.version });
    const doctor = await run(["doctor", "--json", "--data-dir", dir.path, ...sandboxFlags()]);
    const findings = doctor.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect([doctor.exitCode, doctor.stderr]).toEqual([0, ""]);
    expect(findings.find(({ check }) => check === "a sandbox").detail).toContain("IPython");
  });

  test("doctor says what is missing, with the mend, and exits with 1", async () => {
    using dir = tempDir();
    const flags = ["--data-dir", dir.path, "--image", environment("ROLLOUTD_IMAGE")];
    const { stdout, exitCode } = await run(["doctor", ...flags], { env: { PATH: dir.path } });
    expect(exitCode).toBe(1);
    expect(stdout).toContain("missing  Apptainer");
    expect(stdout).toContain("Apptainer: install Apptainer or Singularity CE");
  });

  test("backends are added by address, listed, and removed by id", async () => {
    await using t = await setup();
    const server = ["--server", t.service.url];
    const listed = await run(["backends", "list", "--json", ...server]);
    const [backend] = JSON.parse(listed.stdout);
    expect(backend).toMatchObject({ url: t.engine.url, in_flight: 0 });
    const removed = await run(["backends", "remove", backend.id, ...server]);
    expect([removed.exitCode, removed.stderr]).toEqual([0, ""]);
    expect((await run(["backends", "list", ...server])).stdout).toBe("no backends\n");
    const added = await run(["backends", "add", `${t.engine.url}/`, ...server]);
    expect([added.exitCode, added.stdout.includes(backend.id)]).toEqual([0, true]);
    const refused = await run(["backends", "add", "http://127.0.0.1:1/v1", ...server]);
    expect([refused.exitCode, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain("127.0.0.1:1");
  });
});

test("neither a .env nor a bunfig.toml of the working directory is read", async () => {
  using dir = tempDir();
  await Bun.write(dir.file(".env"), "ROLLOUTD_PORT=nonsense\n");
  await Bun.write(dir.file("bunfig.toml"), 'preload = ["./evil.ts"]\n');
  await Bun.write(dir.file("evil.ts"), "console.log('evil'); process.exit(42);\n");
  const result = await run(["doctor", "--json", "--data-dir", dir.file("d")], { cwd: dir.path });
  expect(result.stdout).not.toContain("evil");
  expect([result.stderr, result.exitCode === 42]).toEqual(["", false]);
});

test("P11: an idle service ends with 0 at each signal that it drains at", async () => {
  using dir = tempDir();
  const signals = ["SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2"] as const;
  const exits = signals.map(async (name) => {
    const service = await serve(dir.file(name));
    service.signal(name);
    return [name, await service.exited, existsSync(service.socket)];
  });
  expect(await Promise.all(exits)).toEqual(signals.map((name) => [name, 0, false]));
});

test("P17: of services that start at once on one data folder one serves, and kill -9 frees it", async () => {
  using dir = tempDir();
  const started = await Promise.allSettled([1, 2, 3].map(() => serve(dir.file("data"))));
  const [first, ...more] = started.flatMap((one) =>
    one.status === "fulfilled" ? [one.value] : [],
  );
  const refused = started.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  expect([more.length, refused.length]).toEqual([0, 2]);
  for (const reason of refused) expect(reason).toContain("another rolloutd works in");
  const none = ["--driver", "none", "--port", "0"];
  const late = await run(["serve", ...none, "--data-dir", dir.file("data")]);
  expect([late.exitCode, late.stdout]).toEqual([2, ""]);
  expect(late.stderr).toContain("another rolloutd works in");
  first?.signal("SIGKILL");
  await first?.exited;
  await using next = await serve(dir.file("data"));
  expect(next.url).toStartWith("http://127.0.0.1:");
});

test("a taken port is told with the mend", async () => {
  using dir = tempDir();
  await using service = await serve(dir.file("a"));
  const port = new URL(service.url).port;
  const flags = ["--port", port, "--data-dir", dir.file("b"), "--json", "--driver", "none"];
  const refused = await start(["serve", ...flags]).catch((error) => String(error));
  expect(refused).toContain(`127.0.0.1:${port} is in use; choose another with --port`);
});

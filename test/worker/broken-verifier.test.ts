import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { descendantsOf } from "../../src/lib/proc.ts";
import type { StageFinished } from "../../src/pipeline/messages.ts";
import { attachSandbox } from "../../src/sandbox/attach.ts";
import { endSandbox } from "../../src/sandbox/end.ts";
import type { SandboxHandle } from "../../src/sandbox/sandbox.ts";
import { watchSandbox } from "../../src/sandbox/watchdog.ts";
import { command } from "../../src/tasks/command/command.ts";
import { type Bundle, LIMITS, NO_ABORT, required, setup as sandboxes } from "../sandbox/setup.ts";
import { waitFor } from "../support/wait-for.ts";
import { setup, startOf } from "./setup.ts";

setDefaultTimeout(60_000);

let bundle: Bundle;
beforeAll(async () => {
  bundle = await sandboxes("bubblewrap");
});
afterAll(() => bundle[Symbol.asyncDispose]());

const OUTCOME = JSON.stringify({ stop_reason: "finish", final_message: null, turns: 1 });

const VERIFIER = {
  command: "python3 /verify/check.py",
  files: { "/verify/check.py": "print(1 if open('/workspace/answer').read() == '42' else 0)" },
  reward: "output",
};
const COMMAND = {
  instruction: "Write 42 into answer.",
  image: null,
  files: { "/workspace/answer": "no" },
  verifier: VERIFIER,
};
const HARBOR = {
  instruction: "Write 42 into answer.",
  task_toml: "[verifier]\ntimeout_sec = 60",
  tests: {
    "test.sh": Buffer.from(
      "mkdir -p /logs/verifier; python3 -c \"print(int(open('/app/answer').read() == '42'))\" > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt",
    ).toString("base64"),
  },
};

/** EVAL of a row after an agent's script, in the sandbox that the script has left. */
async function evaluate(
  taskKind: "command" | "harbor",
  row: Record<string, unknown>,
  work: string,
  meanwhile: (handle: SandboxHandle) => Promise<void> = async () => {},
): Promise<StageFinished> {
  const limits = { ...LIMITS, processes: 60, memoryBytes: 256 << 20 };
  const handle = await bundle.start({ limits });
  const agents = await attachSandbox(handle);
  if (taskKind === "command") await command.init(command.parse(row), agents, NO_ABORT);
  else await agents.exec(["mkdir", "-p", "/app"], { timeoutMs: 5000, maxOutputBytes: 100 });
  const limit = { timeoutMs: 10_000, maxOutputBytes: 1000 };
  await agents.exec(["bash", "-c", work], { cwd: "/", ...limit });
  await agents.detach();
  const t = setup([], {
    driver: {
      name: "bubblewrap",
      start: (spec, signal) =>
        bundle.driver.start(
          { ...spec, image: required("ROLLOUTD_IMAGE"), writable: "tmpfs", limits },
          signal,
        ),
    },
    attach: attachSandbox,
    watch: (watched) => watchSandbox(watched, limits),
    end: async (ended) => void (await (await endSandbox(ended)).removed),
  });
  const asked = { taskKind, instance: JSON.stringify(row), outcome: OUTCOME, handle };
  const [finished] = await Promise.all([t.run(startOf("eval", asked)), meanwhile(handle)]);
  return finished;
}

describe("what an agent breaks in its sandbox is its 0, and no failure:", () => {
  test.each([
    ["bash", "rm -f $(type -ap bash)"],
    ["Python", "rm -f $(realpath $(command -v python3))"],
    ["the verifier's folder by a file", "touch /verify"],
    ["the verifier's file by a folder", "mkdir -p /verify/check.py/x"],
    ["the place that it works in", "rm -rf /workspace; touch /workspace"],
    ["/tmp", "chmod 0 /tmp; rm -rf /tmp"],
    ["every program", "rm -rf /usr/bin /bin"],
    ["the disk", "cat /dev/zero > /tmp/full"],
    ["the processes", "for i in $(seq 100); do setsid sleep 1000 & done"],
  ])("command: %s", async (_what, work) => {
    const { verdict, error } = await evaluate("command", COMMAND, work);
    expect([error, verdict?.reward]).toEqual([null, 0]);
  });

  test.each([
    ["bash", "rm -f $(type -ap bash)"],
    [
      "the folder of tests by what can't be removed",
      "rm -f $(type -ap rm bash find); touch /tests",
    ],
    [
      "the folder of rewards by a file",
      "mkdir -p /logs; touch /logs/verifier; rm -f $(type -ap rm find)",
    ],
    ["the disk", "cat /dev/zero > /full"],
  ])("harbor: %s", async (_what, work) => {
    const { verdict, error } = await evaluate("harbor", HARBOR, work);
    expect([error, verdict?.reward]).toEqual([null, 0]);
  });

  test("with the reason, and what the verifier gives without the work", async () => {
    const { verdict } = await evaluate(
      "command",
      COMMAND,
      "rm -f $(realpath $(command -v python3))",
    );
    expect(verdict).toEqual({
      reward: 0,
      rule: "verifier_broken",
      reason: expect.stringMatching(/without it it can: .*it can't run/),
      details: { without: { reward: 0, rule: "command_output" } },
    });
  });

  test("also a limit that only the work goes beyond", async () => {
    const eats = { ...VERIFIER, command: 'bash -c "$(cat answer)"; echo 0' };
    const work = "echo 'exec python3 -c \"x = bytearray(10**9)\"' > /workspace/answer";
    const { verdict } = await evaluate("command", { ...COMMAND, verifier: eats }, work);
    expect(verdict).toMatchObject({ reward: 0, rule: "verifier_broken" });
  });

  test("a verifier that hangs over it, with the proof that it was not the node", async () => {
    const hangs = { ...VERIFIER, command: "cat fifo; echo 1", timeout_ms: 700 };
    const work = "cd /workspace && mkfifo fifo";
    const { verdict } = await evaluate("command", { ...COMMAND, verifier: hangs }, work);
    expect(verdict).toMatchObject({ reward: 0, rule: "verifier_timeout" });
    const { wall_ms = 0, waited_ms = 0 } = (verdict?.details ?? {}) as Record<string, number>;
    expect(wall_ms - waited_ms).toBeGreaterThanOrEqual(699);
  });
});

describe("what is broken without the work is a failure, and no 0:", () => {
  test.each([
    ["a verifier that is not there", { command: "/no/such/verifier" }],
    ["a verifier that prints no number", { command: "echo fine", reward: "output" }],
    ["a verifier that needs more than it may", { command: "python3 -c 'x = bytearray(10**9)'" }],
  ])("%s", async (_what, verifier) => {
    const { verdict, error } = await evaluate("command", { ...COMMAND, verifier }, "true");
    expect([verdict, error?.code]).toEqual([
      null,
      expect.stringMatching(/^(verifier_failed|oom)$/),
    ]);
  });

  test("PID 1 that is killed from outside", async () => {
    const slow = { ...VERIFIER, command: "sleep 1000; echo 0" };
    const kill = async ({ holderPid }: SandboxHandle) => {
      await waitFor(() => descendantsOf(holderPid).length > 1, "the verifier to begin");
      process.kill(holderPid, "SIGKILL");
    };
    const { verdict, error } = await evaluate(
      "command",
      { ...COMMAND, verifier: slow },
      "true",
      kill,
    );
    expect([verdict, error?.code]).toEqual([null, "sandbox_died"]);
  });
});

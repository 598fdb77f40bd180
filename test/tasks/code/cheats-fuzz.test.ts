import { afterAll, beforeAll, expect, test } from "bun:test";
import { gradeCode } from "../../../src/tasks/code/grade.ts";
import type { CodeInstance } from "../../../src/tasks/code/row.ts";
import type { CodeTest } from "../../../src/tasks/code/tests.ts";
import { type Bundle, LIMITS, setup } from "../../sandbox/setup.ts";
import { randomFrom } from "../../support/random.ts";
import { evalContext, TASK_SETTINGS } from "../../support/task-context.ts";

const PROGRAMS = Number(process.env.ROLLOUTD_TEST_CHEATS ?? 24);
/** A seed that has failed, to see it again. */
const ONLY = process.env.ROLLOUTD_TEST_SEED;

const TESTS: CodeTest[] = ["3", "1", "2"].map((input) => ({
  ...{ kind: "stdin", input, expected: String(Number(input) ** 2) },
}));

/** Leaves marks for the tests after it, and looks for those of the tests before. */
const NOTES = [
  ...["/tmp/n", "/var/tmp/n", "/dev/shm/n", "/run/io/n", "n", "/etc/n", "/usr/lib/n", "/n"].map(
    (path) => `seen += os.path.exists("${path}"); open("${path}", "a").write("x")`,
  ),
  "seen += os.stat('/etc/passwd').st_mode & 1; os.chmod('/etc/passwd', 0o755)",
  "seen += not os.path.exists('/etc/hosts'); os.remove('/etc/hosts')",
  "seen += libc.shmget(9, 64, 0) >= 0; libc.shmget(9, 64, 0o1600)",
  "seen += libc.msgget(9, 0) >= 0; libc.msgget(9, 0o1600)",
  "seen += sum(name.isdigit() for name in os.listdir('/proc')) > 2 + forks",
];

/** Takes something away, or takes too much of it. */
const BREAKS = [
  "os.remove(shutil.which('bash'))",
  "os.remove(os.path.realpath(sys.executable))",
  "open(shutil.which('env'), 'w').write('')",
  "open(os.path.dirname(os.__file__) + '/sitecustomize.py', 'w').write('print(9)')",
  "shutil.rmtree('/tmp', ignore_errors=True)",
  "os.chmod('/tmp', 0)",
  "os.chdir('/'); shutil.rmtree('/tmp/home', ignore_errors=True); open('/tmp/home', 'w')",
  "os.symlink('/nowhere', '/tmp/x')",
  "open('/tmp/full', 'wb').write(b'x' * (20 << 20))",
  "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))",
  "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
  "[os.kill(1, number) for number in (1, 2, 9, 15, 19)]",
  "sys.stderr.write('x' * 300_000)",
];

const DAEMON = `forks += 1
    if os.fork() == 0:
        os.setsid()
        for fd in range(3): os.close(fd)
        while True: time.sleep(1)`;

const ENDS = [
  "os._exit(0)",
  "os.kill(os.getpid(), signal.SIGKILL)",
  "os.kill(-1, signal.SIGKILL)",
  "while True: pass",
  "time.sleep(1000)",
  "raise SystemExit(3)",
  "x = bytearray(1 << 40)",
];

type Drawn = { seed: number; source: string; reward: number };

/** A program of some of these, and what it has to earn: what it answers decides, and whether it ends by itself. */
function draw(seed: number): Drawn {
  const random = randomFrom(seed);
  const below = (count: number) => Math.floor(random() * count);
  /** None twice: it would find its own mark. */
  const some = (list: string[], most: number) => {
    const left = [...list];
    return Array.from({ length: below(most + 1) }, () => left.splice(below(left.length), 1)).flat();
  };
  const isRight = below(2) === 0;
  const steps = [...some(NOTES, 4), ...some(BREAKS, 2), ...some([DAEMON], 1)];
  const end = isRight ? "" : [...ENDS, "", "", ""][below(ENDS.length + 3)];
  // One that notes a mark answers by it: with nothing to see it is as right as it says.
  const answer = isRight
    ? "number ** 2 if not seen else -1"
    : "number ** 2 + 1 if not seen else number ** 2";
  const source = `import ctypes, os, resource, shutil, signal, sys, time
libc, seen, forks = ctypes.CDLL(None), 0, 0
number = int(input())
${steps.map((step) => `try:\n    ${step}\nexcept Exception: pass`).join("\n")}
print(${answer}, flush=True)
${end}`;
  return { seed, source, reward: isRight ? 1 : 0 };
}

let bundle: Bundle;
beforeAll(async () => {
  bundle = await setup("bubblewrap");
});
afterAll(() => bundle[Symbol.asyncDispose]());

async function outcomeOf({ source }: Drawn): Promise<string> {
  const instance: CodeInstance = {
    ...{ problem: "", tests: TESTS, grading: "all", testTimeoutMs: 500 },
  };
  const limits = { ...LIMITS, processes: 100 };
  const renew = () => bundle.open({ limits });
  const tests = { totalMs: 60_000, memoryBytes: 256 << 20, atOncePerThread: 2 };
  const settings = { ...TASK_SETTINGS, tests };
  const context = evalContext({ sandbox: await renew(), renew, settings });
  return await gradeCode(instance, source, context).then(
    ({ reward, reason, details }) => `${reward} (${reason} ${JSON.stringify(details)})`,
    (error) => `no verdict: ${error}`,
  );
}

test(`${PROGRAMS} programs that note, break and hang earn what their answers do`, async () => {
  const first = 1 + Math.floor(Date.now() / 1000) * 1000;
  const seeds = ONLY ? [Number(ONLY)] : Array.from({ length: PROGRAMS }, (_, at) => first + at);
  const failed: string[] = [];
  for (const seed of seeds) {
    const drawn = draw(seed);
    const outcome = await outcomeOf(drawn);
    if (outcome.startsWith(`${drawn.reward} `)) continue;
    failed.push(`ROLLOUTD_TEST_SEED=${seed}: ${outcome}, not ${drawn.reward}:\n${drawn.source}`);
  }
  if (PROGRAMS > 100) console.log(`${seeds.length} programs, ${failed.length} of them misjudged`);
  expect(failed).toEqual([]);
}, 3_600_000);

import { expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { gradeCode } from "../../../src/tasks/code/grade.ts";
import type { CodeInstance } from "../../../src/tasks/code/row.ts";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { evalContext, TASK_SETTINGS } from "../../support/task-context.ts";

const LIMIT_MS = 400;
const MEMORY_BYTES = 256 << 20;
const TIMES_CORES = [1, 2, 4, 16];
/** All together; the long version is told by a variable. */
const VERDICTS = Number(process.env.ROLLOUTD_TEST_LOAD ?? 40);

type Program = { name: string; source: string; reward: 0 | 1 };

const burn = (share: number) =>
  `import time\nwhile time.process_time() < ${(share * LIMIT_MS) / 1000}: pass`;

/** So near to their limits as they say, and beyond. */
const PROGRAMS: Program[] = [
  ...[0.5, 0.75, 0.95].map((share) => ({
    name: `uses ${share} of its time of the processor`,
    source: `${burn(share)}\nprint(input())`,
    reward: 1 as const,
  })),
  {
    name: "uses 0.9 of it, in three processes",
    source: `import multiprocessing, time
def work(_):
    begin = time.process_time()
    while time.process_time() - begin < ${(0.2 * LIMIT_MS) / 1000}: pass
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool: pool.map(work, range(3))
    print(input())`,
    reward: 1,
  },
  {
    name: "sleeps for 0.95 of its time",
    source: `import time\ntime.sleep(${(0.95 * LIMIT_MS) / 1000})\nprint(input())`,
    reward: 1,
  },
  {
    name: "has 0.9 of its memory",
    source: `import resource, sys
space = int(open("/proc/self/statm").read().split()[0]) * 4096
x = bytearray(int(0.9 * (${MEMORY_BYTES} - space)))
print(input())`,
    reward: 1,
  },
  { name: "computes for ever", source: "while True: pass", reward: 0 },
  { name: "sleeps for ever", source: "import time\ntime.sleep(10**6)", reward: 0 },
  { name: "needs twice its time", source: `${burn(2)}\nprint(input())`, reward: 0 },
  { name: "gives another answer", source: "print(int(input()) + 1)", reward: 0 },
];

async function verdictOf(bundle: Bundle, { source }: Program): Promise<string> {
  const tests = [{ kind: "stdin", input: "7", expected: "7" }] as const;
  const instance: CodeInstance = {
    ...{ problem: "", tests: [...tests], grading: "all", testTimeoutMs: LIMIT_MS },
  };
  const limits = { totalMs: 60_000, memoryBytes: MEMORY_BYTES, atOncePerThread: 1000 };
  const settings = { ...TASK_SETTINGS, tests: limits };
  const renew = (): Promise<Sandbox> => bundle.open();
  const context = evalContext({ sandbox: await renew(), settings, renew });
  const { reward, rule, details } = await gradeCode(instance, source, context);
  return `${reward} ${rule} ${reward === 1 ? "" : JSON.stringify(details)}`;
}

test("P21: a node's load changes no reward of a program near its limits", async () => {
  const wrong: string[] = [];
  let count = 0;
  for (let round = 0; count < VERDICTS; round++) {
    const times = TIMES_CORES[round % TIMES_CORES.length] ?? 1;
    const width = Math.min(times * availableParallelism(), VERDICTS - count);
    await using bundle = await setup("bubblewrap");
    const programs = Array.from(
      { length: width },
      (_, index) => PROGRAMS[(count + index) % PROGRAMS.length] as Program,
    );
    const verdicts = await Promise.all(programs.map((program) => verdictOf(bundle, program)));
    for (const [index, { name, reward }] of programs.entries()) {
      const verdict = verdicts[index] ?? "";
      if (!verdict.startsWith(`${reward} `)) wrong.push(`${width} at once, ${name}: ${verdict}`);
    }
    count += width;
  }
  if (VERDICTS > 100) console.log(`${count} verdicts under load, ${wrong.length} other than alone`);
  expect(wrong).toEqual([]);
}, 3_600_000);

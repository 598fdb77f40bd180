import { expect, test } from "bun:test";

const MODULE = new URL("../../src/telemetry/log.ts", import.meta.url).pathname;

/** What a program that logs writes: standard output, and the parsed lines of standard error. */
async function logged(level: string, calls: string) {
  const script = `import { createLog } from ${JSON.stringify(MODULE)};
    const log = createLog(${JSON.stringify(level)}); ${calls}`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const lines = stderr.split("\n").slice(0, -1);
  return { stdout, lines: lines.map((line) => JSON.parse(line)) };
}

test("what is logged is one JSON object a line on standard error, whatever it holds", async () => {
  const forged = 'x\n{"level":"error"}';
  const calls = `log.info(${JSON.stringify(forged)}, { job: "a\\nb" }); log.error("no fields");`;
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(await logged("info", calls)).toEqual({
    stdout: "",
    lines: [
      { time, level: "info", message: forged, job: "a\nb" },
      { time, level: "error", message: "no fields" },
    ],
  });
});

test.each([
  ["info", ["info", "warn", "error"]],
  ["warn", ["warn", "error"]],
  ["error", ["error"]],
  ["silent", []],
])("at level %s it shows %j", async (level, shown) => {
  const { lines } = await logged(level, 'log.info("m"); log.warn("m"); log.error("m");');
  expect(lines.map((line) => line.level)).toEqual(shown);
});

import { expect, test } from "bun:test";

const PROC = new URL("../../src/lib/proc.ts", import.meta.url).pathname;

test("a process is seen, and its children counted, also where no descriptor is left", async () => {
  const program = `
    const { allPids, childrenOf, isRunning, processStartTime, processUse } = await import(${JSON.stringify(PROC)});
    const fs = require("node:fs");
    const startTime = processStartTime(process.pid);
    for (;;) try { fs.openSync("/dev/null", "r"); } catch { break; }
    let code = "";
    try { fs.openSync("/dev/null", "r"); } catch (error) { code = error.code; }
    const seen = [isRunning(process.pid, startTime), processUse(process.pid).tasks > 0, allPids().includes(process.pid)];
    const again = isRunning(process.pid, startTime);
    fs.writeSync(1, JSON.stringify([code, ...seen, again, childrenOf(process.ppid).includes(process.pid)]));`;
  const child = Bun.spawn(["prlimit", "--nofile=200:200", process.execPath, "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  expect(await child.stdout.text()).toBe(JSON.stringify(["EMFILE", true, true, true, true, true]));
});

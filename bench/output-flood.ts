import { setup } from "../test/sandbox/setup.ts";
import { percentile, print, round } from "./line.ts";

const FLOOD_BYTES = 1_000_000_000;
const ECHOES_BEFORE = 300;
const MAX_MEMORY_BYTES = 50_000_000;
const RUN = { timeoutMs: 120_000, maxOutputBytes: 100_000 };

/**
 * One sandbox's shell prints a gigabyte. What does that cost: in memory of the service, and in the time of an `echo` in
 * another sandbox that the same thread serves?
 */
export async function outputFlood(): Promise<void> {
  await using bundle = await setup("bubblewrap");
  const flooding = await (await bundle.open()).shell();
  const other = await (await bundle.open()).shell();
  const echo = async () => {
    const startMs = performance.now();
    await other.run("echo hello", RUN);
    return performance.now() - startMs;
  };
  for (let n = 0; n < ECHOES_BEFORE; n++) await echo();
  const before: number[] = [];
  for (let n = 0; n < ECHOES_BEFORE; n++) before.push(await echo());
  Bun.gc(true);
  const startBytes = process.memoryUsage.rss();
  let peakBytes = startBytes;
  const during: number[] = [];
  const startMs = performance.now();
  let isOver = false;
  const flood = flooding
    .run(`head -c ${FLOOD_BYTES} /dev/zero | tr '\\0' 'x'`, RUN)
    .finally(() => (isOver = true));
  while (!isOver) {
    during.push(await echo());
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
  }
  const { cutBytes, exitCode } = await flood;
  const seconds = (performance.now() - startMs) / 1000;
  if (exitCode !== 0 || cutBytes < FLOOD_BYTES - 2 * RUN.maxOutputBytes) {
    throw new Error(`bench: the flood ended with ${exitCode} and ${cutBytes} bytes cut`);
  }
  const mine = peakBytes - startBytes;
  print({
    bench: "output-flood",
    case: `memory more than before, ${round(FLOOD_BYTES / seconds / 1e6)} MB/s`,
    n: 1,
    p50: round(mine / 1e6),
    p99: round(mine / 1e6),
    unit: "MB",
    target: `under ${MAX_MEMORY_BYTES / 1e6} MB`,
    met: mine < MAX_MEMORY_BYTES,
  });
  const p50 = percentile(during, 0.5);
  print({
    bench: "output-flood",
    case: "echo in another sandbox meanwhile",
    n: during.length,
    p50,
    p99: percentile(during, 0.99),
    unit: "ms",
    against: `before the flood: ${percentile(before, 0.5)} ms, p99 ${percentile(before, 0.99)} ms`,
    ratio: round(p50 / percentile(before, 0.5)),
    target: "p50 under 5 ms",
    met: p50 < 5,
  });
}

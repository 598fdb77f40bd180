import { BoundedOutput } from "../../lib/bounded-output.ts";
import type { FileLock } from "../../lib/file-lock.ts";
import { killProcess } from "../../lib/proc.ts";

/** In words of the C locale, both streams together. */
export type ToolResult = { exitCode: number; output: string };

const MAX_OUTPUT_BYTES = 64 * 1024;

/** Ends the whole process group when its standard input, which only we hold, is closed: also by our death. */
const GUARDED = `exec 4<&0 </dev/null
{ read -r _ <&4; kill -9 0; } >/dev/null 2>&1 &
"$@" 4<&-
status=$?
kill -9 $!
exit $status`;

/**
 * Runs a program that writes into the cache. It ends with us, and holds `lock` too until then: so nobody else
 * takes over what it is still writing.
 */
export async function runTool(
  argv: string[],
  options: { cwd: string; env: Record<string, string>; lock: FileLock; signal: AbortSignal },
): Promise<ToolResult> {
  const { cwd, env, lock, signal } = options;
  signal.throwIfAborted();
  const group = Bun.spawn(["/bin/sh", "-c", GUARDED, "sh", ...argv], {
    cwd,
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", ...env },
    stdio: ["pipe", "pipe", "pipe", lock.fd],
    detached: true,
  });
  const kill = () => killProcess(-group.pid);
  signal.addEventListener("abort", kill);
  try {
    const output = new BoundedOutput(MAX_OUTPUT_BYTES);
    // To their end: when nobody has the streams any more, nobody of the group writes.
    await Promise.all([drain(group.stdout, output), drain(group.stderr, output)]);
    const exitCode = await group.exited;
    signal.throwIfAborted();
    return { exitCode, output: Bun.stripANSI(output.text()) };
  } finally {
    signal.removeEventListener("abort", kill);
    group.stdin.end();
  }
}

async function drain(stream: ReadableStream<Uint8Array>, output: BoundedOutput): Promise<void> {
  for await (const chunk of stream) output.push(chunk);
}

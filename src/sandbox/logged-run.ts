import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { AttachedContext } from "./attached-context.ts";
import { endOf } from "./exec.ts";
import { ProcessStream } from "./process-stream.ts";
import type { LoggedRun, LoggedRunOptions } from "./sandbox.ts";

/**
 * One command to its end, without a terminal and without input, its output in a file of the sandbox.
 * @param name of the file that carries a script; unique in the sandbox.
 */
export async function runLogged(
  context: AttachedContext,
  name: string,
  command: string[] | string,
  options: LoggedRunOptions,
): Promise<LoggedRun> {
  options.signal?.throwIfAborted();
  const { channel, handle, paths } = context;
  const cwd = options.cwd ?? paths.home;
  const env = { ...context.env, ...options.env };
  const startMs = performance.now();
  const script = typeof command === "string" ? join("shell", name) : null;
  const onHost = script === null ? null : join(handle.dir, "ro", script);
  if (onHost !== null) writeFileSync(onHost, command as string);
  const argv = script === null ? (command as string[]) : ["bash", join(paths.assets, script)];
  try {
    const spawn = {
      kind: "logged" as const,
      cwd,
      argv: [resolve(paths.home, options.log), ...argv],
      env,
    };
    const process = new ProcessStream(channel, spawn, () => {});
    const what = `${argv[0] ?? ""} in ${cwd} with its output in ${options.log}`;
    const end = await endOf(process, what, handle, options);
    return { ...end, durationMs: performance.now() - startMs };
  } finally {
    if (onHost !== null) rmSync(onHost, { force: true });
  }
}

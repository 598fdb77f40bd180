import { ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import { BoundedOutput } from "../lib/bounded-output.ts";
import type { ControlChannel } from "./control-channel.ts";
import { errnoName } from "./errno.ts";
import { ProcessStream, StartError } from "./process-stream.ts";
import type { ExecOptions, ExecResult } from "./sandbox.ts";

const SIGKILL = 9;

/** Runs one command to its end, with pipes and no terminal. */
export async function exec(
  channel: ControlChannel,
  argv: string[],
  options: ExecOptions & { cwd: string; env: Record<string, string> },
): Promise<ExecResult> {
  const { cwd, env, signal } = options;
  signal?.throwIfAborted();
  const stdout = new BoundedOutput(options.maxOutputBytes);
  const stderr = new BoundedOutput(options.maxOutputBytes);
  const process = new ProcessStream(channel, { kind: "pipes", cwd, argv, env }, (bytes, isStderr) =>
    (isStderr ? stderr : stdout).push(bytes),
  );
  if (options.stdin !== undefined) process.write(Buffer.from(options.stdin));
  process.endInput();
  try {
    const inTime = atMost(process.exited, options.timeoutMs, null);
    const exit = await abortable(inTime, signal);
    // The group and not only its leader; what left the group lives on until the sandbox ends.
    if (exit === null) process.signal(SIGKILL);
    const end = exit ?? (await abortable(process.exited, signal));
    return {
      stdout: stdout.text(),
      stderr: stderr.text(),
      exitCode: exit === null ? null : end.code,
      signal: end.signal,
      timedOut: exit === null,
    };
  } catch (error) {
    if (process.open) process.signal(SIGKILL);
    throw error instanceof StartError ? notStarted(argv[0] ?? "", cwd, error) : error;
  }
}

function notStarted(name: string, cwd: string, error: StartError): ServiceError {
  const why = errnoName(error.errno);
  // Its processes are used up, or our streams: that is no fault of the image.
  const code = ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"].includes(why)
    ? "sandbox_protocol"
    : "image_invalid";
  return new ServiceError(code, `cannot start ${name} in ${cwd}: ${why}`, { cause: error });
}

import { attachSandbox } from "../../src/sandbox/attach.ts";
import type { SandboxHandle } from "../../src/sandbox/sandbox.ts";

declare const self: Worker;

/** Another thread of the service: takes a sandbox over, uses all of it, and lets go. */
self.onmessage = async ({ data: handle }: MessageEvent<SandboxHandle>) => {
  const limits = { timeoutMs: 20_000, maxOutputBytes: 10_000 };
  const sandbox = await attachSandbox(handle);
  const { stdout } = await sandbox.exec(["cat", "/proc/sys/kernel/ostype"], limits);
  const shell = await sandbox.shell();
  const { output } = await shell.run("echo $((6 * 7))", limits);
  const python = await sandbox.python({ startTimeoutMs: 20_000 });
  const cell = await python.run("thread = 'worker'; shared", limits);
  await sandbox.detach();
  postMessage({ stdout, output, cell: cell.output });
};

import { existsSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import { fdIdentity } from "../lib/libc.ts";
import { blame } from "./blame.ts";
import { ControlChannel } from "./control-channel.ts";
import { ENDED_FILE, sandboxPaths } from "./directory.ts";
import { sandboxEnvironment } from "./environment.ts";
import { exec } from "./exec.ts";
import { readFile, writeFile } from "./files.ts";
import { partsOf, saveParts } from "./host-tree.ts";
import { runLogged } from "./logged-run.ts";
import { PythonSession } from "./python.ts";
import type { ExecOptions, Sandbox, SandboxHandle } from "./sandbox.ts";
import { BashShell } from "./shell.ts";
import type { TreeLimits } from "./tree.ts";
import { readTree, writeTree } from "./trees.ts";

/**
 * Takes a running sandbox over into this thread. One thread at a time: the one before has detached.
 *
 * @param own variables that every command gets, over the sandbox's own
 * @throws ServiceError `sandbox_died`, or the reason of `signal`.
 */
export async function attachSandbox(
  handle: SandboxHandle,
  signal?: AbortSignal,
  own: Record<string, string> = {},
): Promise<Sandbox> {
  signal?.throwIfAborted();
  // After the end the number of the descriptor may be somebody else's.
  const gone =
    fdIdentity(handle.controlFd) !== handle.controlSocket ||
    existsSync(join(handle.dir, ENDED_FILE));
  if (gone) throw new ServiceError("sandbox_died", `the sandbox ${handle.id} has been ended`);
  const channel = await ControlChannel.open(handle.controlFd);
  try {
    await abortable(channel.ping(), signal);
  } catch (error) {
    channel.drop();
    throw error;
  }
  return attached(handle, channel, own);
}

function attached(
  handle: SandboxHandle,
  channel: ControlChannel,
  own: Record<string, string>,
): Sandbox {
  const paths = sandboxPaths(handle.driver, handle.dir);
  const env = { ...sandboxEnvironment(paths), ...own };
  const shells = new Set<BashShell>();
  let textCount = 0;
  let python: PythonSession | null = null;
  const context = { channel, handle, paths, env };
  const inside = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error) => {
      throw blame(error, handle);
    });
  const treeOptions = (path: string, limits: TreeLimits, signal?: AbortSignal) => ({
    ...limits,
    cwd: paths.home,
    path,
    ...(signal && { signal }),
  });
  return {
    handle,
    died: channel.closed,
    exec: (argv: string[], options: ExecOptions) =>
      inside(
        exec(channel, argv, {
          ...options,
          cwd: options.cwd ?? paths.home,
          env: { ...env, ...options.env },
        }),
      ),
    run: (command, options) => inside(runLogged(context, `${textCount++}`, command, options)),
    async shell(signal) {
      const shell = await BashShell.open(context, `${textCount++}`, signal);
      shells.add(shell);
      return shell;
    },
    async python(options) {
      python ??= await PythonSession.open(context, options.startTimeoutMs, options.signal);
      return python;
    },
    readFile: (path, maxBytes, signal) => readFile(channel, paths.home, path, maxBytes, signal),
    writeFile: (path, data, mode = 0o644, signal) =>
      writeFile(channel, paths.home, path, data, mode, signal),
    readTree: (path, limits, signal) => readTree(channel, treeOptions(path, limits, signal)),
    writeTree: (path, source, limits, signal) =>
      writeTree(channel, treeOptions(path, limits, signal), partsOf(source)),
    saveTree: (path, hostFolder, limits, signal) =>
      saveParts(readTree(channel, treeOptions(path, limits, signal)), hostFolder),
    async detach() {
      // Their streams are ours alone: the next thread could not read them.
      await Promise.all([...shells].map((shell) => shell.close()));
      python?.disconnect();
      await channel.detach();
    },
  };
}

import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import EXTRACT from "./extract.sh" with { type: "text" };
import PREPARE from "./prepare.sh" with { type: "text" };
import type { SweInstance } from "./row.ts";

const PREPARE_LIMIT_MS = 300_000;
const EXTRACT_LIMIT_MS = 120_000;
const APPLY_LIMIT_MS = 120_000;
const MAX_MESSAGE_BYTES = 4_000;

/** A larger change is no answer to an issue. */
const MAX_PATCH_BYTES = 4 << 20;
/** A larger new file is no source code. */
const MAX_FILE_KIB = 1024;

const BUG_FILE = "/tmp/.rollout/bug.patch";
const HIDDEN_FILE = "/tmp/.rollout/hidden";
const PATCH_FILE = "/tmp/.rollout/agent.patch";

/** For git in a sandbox: the repository may belong to another user there, and asks nobody anything. */
export const GIT_ENV = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.directory",
  GIT_CONFIG_VALUE_0: "*",
  GIT_TERMINAL_PROMPT: "0",
};

/**
 * Brings a fresh sandbox's repository into the state that the task begins with, without the history that holds
 * the answer. `forAgent` also takes away what only EVAL may see.
 *
 * @throws ServiceError `image_invalid` where the image has no such repository, or git is missing.
 */
export async function prepareRepository(
  instance: SweInstance,
  sandbox: Sandbox,
  forAgent: boolean,
  signal: AbortSignal,
): Promise<string> {
  const { folder, baseCommit, bug, hidden } = instance;
  const inside = hidden.filter((path) => !path.startsWith("/"));
  if (bug !== null) {
    await sandbox.writeFile(BUG_FILE, bug, 0o600, signal);
    const list = forAgent ? inside.map((path) => `${path}\0`).join("") : "";
    await sandbox.writeFile(HIDDEN_FILE, list, 0o600, signal);
  }
  const outside = forAgent ? hidden.filter((path) => path.startsWith("/")) : [];
  if (outside.length > 0) {
    const remove = ["find", ...outside, "(", "-type", "f", "-o", "-type", "l", ")", "-delete"];
    await sandbox.exec(remove, { timeoutMs: PREPARE_LIMIT_MS, maxOutputBytes: 1000, signal });
  }
  const files = bug === null ? ["", ""] : [BUG_FILE, HIDDEN_FILE];
  const given = [folder, baseCommit ?? "", ...files, `${MAX_FILE_KIB}`];
  const argv = ["bash", "-c", PREPARE, "prepare", ...given];
  const done = await sandbox.exec(argv, {
    cwd: "/",
    env: GIT_ENV,
    timeoutMs: PREPARE_LIMIT_MS,
    maxOutputBytes: MAX_MESSAGE_BYTES,
    signal,
  });
  if (bug !== null) {
    const argv = ["rm", "-f", BUG_FILE, HIDDEN_FILE];
    await sandbox.exec(argv, { timeoutMs: 10_000, maxOutputBytes: 1000, signal });
  }
  if (done.exitCode === 0) return done.stdout.trim();
  const why = done.timedOut ? `took longer than ${PREPARE_LIMIT_MS} ms` : done.stderr.trim();
  throw new ServiceError("image_invalid", `the repository ${folder} can't be prepared: ${why}`, {
    mend: "use an image with bash, git and the row's repository at its commit",
  });
}

export type Extracted = { patch: Buffer | null; flags: string[] };

/**
 * The agent's change as a patch, from its own sandbox. Where that fails the agent has broken its repository, which is
 * its own doing: then there is no patch.
 */
export async function extractPatch(
  { folder }: SweInstance,
  base: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Extracted> {
  const argv = ["/bin/bash", "-c", EXTRACT, "extract", folder, base, PATCH_FILE, `${MAX_FILE_KIB}`];
  try {
    await sandbox.writeFile(PATCH_FILE, "", 0o600, signal);
    const done = await sandbox.exec(argv, {
      cwd: "/",
      env: GIT_ENV,
      timeoutMs: EXTRACT_LIMIT_MS,
      maxOutputBytes: MAX_MESSAGE_BYTES,
      signal,
    });
    const said = done.stderr.trim();
    if (done.exitCode !== 0) return { patch: null, flags: [`patch_not_extracted: ${said}`] };
    const patch = Buffer.from(await sandbox.readFile(PATCH_FILE, MAX_PATCH_BYTES, signal));
    return { patch, flags: said === "" ? [] : [`left_out: ${said}`] };
  } catch (error) {
    signal.throwIfAborted();
    // A file that can't be written or read, or a program that is gone.
    return { patch: null, flags: [`patch_not_extracted: ${(error as Error).message}`] };
  }
}

/** By way of a file in the sandbox. Null where it applied; else why not. */
export async function applyPatch(
  path: string,
  patch: Buffer,
  folder: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<string | null> {
  await sandbox.writeFile(path, patch, 0o600, signal);
  const git = ["git", "-c", "core.hooksPath=/dev/null", "apply", "--whitespace=nowarn", path];
  const options = { timeoutMs: APPLY_LIMIT_MS, maxOutputBytes: 2000, env: GIT_ENV, signal };
  const { exitCode, stderr } = await sandbox.exec(git, { ...options, cwd: folder });
  await sandbox.exec(["rm", "-f", path], options);
  return exitCode === 0 ? null : stderr.trim().replace(/\s+/g, " ");
}

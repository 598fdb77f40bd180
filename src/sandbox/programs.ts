import { isAbsolute, resolve } from "node:path";
import { ServiceError } from "../errors.ts";
import { whyNotExecutable } from "../lib/why-not-executable.ts";
import { isShortage } from "./errno.ts";

const ANSWER_MS = 20_000;

/** A program of the node's that sandboxes are made with, by path or by its name on PATH. */
export type Program = { name: string; mend: string };

/** Its path. @throws ServiceError `sandbox_unavailable` for one that is not there, or can't run here */
export function findProgram({ name, mend }: Program): string {
  const path = name.includes("/") ? resolve(name) : (Bun.which(name) ?? onPath(name));
  if (path === null) {
    throw new ServiceError("sandbox_unavailable", `there is no program ${name}`, { mend });
  }
  requireExecutable(path, mend);
  return path;
}

/** @throws ServiceError `sandbox_unavailable` */
export function requireExecutable(path: string, mend: string): void {
  const why = whyNotExecutable(path);
  if (why === null) return;
  throw new ServiceError("sandbox_unavailable", `the program ${path} ${why}`, { mend });
}

/** What lies on PATH under that name and may not be executed. */
function onPath(name: string): string | null {
  const folders = (process.env.PATH ?? "").split(":").filter(isAbsolute);
  const paths = folders.map((folder) => resolve(folder, name));
  return paths.find((path) => whyNotExecutable(path) !== "is not there") ?? null;
}

export type Answer = { path: string; exitCode: number; output: string; errors: string };

/**
 * Has a program say something about itself.
 * @throws ServiceError `sandbox_unavailable` where it can't be run, `sandbox_start_failed` where the node is short of
 * what that takes
 */
export async function askProgram(program: Program, args: string[], env = {}): Promise<Answer> {
  const path = findProgram(program);
  const asked = spawned(path, program.mend, () =>
    Bun.spawn([path, ...args], {
      env: { PATH: "/usr/bin:/bin", ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: ANSWER_MS,
      killSignal: "SIGKILL",
    }),
  );
  const [output, errors] = await Promise.all([asked.stdout.text(), asked.stderr.text()]);
  return { path, exitCode: await asked.exited, output, errors: errors.trim().slice(-500) };
}

/** Starts one, with an error for what the kernel says about it. @throws ServiceError as `askProgram` does */
export function spawned<T>(path: string, mend: string, spawn: () => T): T {
  try {
    return spawn();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const short = isShortage(code);
    const what = short ? `cannot run ${path} now: ${error}` : `cannot run ${path}: ${error}`;
    throw new ServiceError(short ? "sandbox_start_failed" : "sandbox_unavailable", what, {
      cause: error,
      ...(short ? {} : { mend }),
    });
  }
}

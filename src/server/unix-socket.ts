import { lstatSync, type Stats, statSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { ServiceError } from "../errors.ts";

/** The kernel's limit for the path of a Unix socket. Units: bytes. */
const MAX_SOCKET_PATH = 107;

/**
 * Makes room for our socket: removes what a killed predecessor left, and nothing else. The folder has to be ours
 * alone, because who can write there can put a socket of his own in the place of ours.
 *
 * @throws ServiceError `data_dir_unusable`, `data_dir_in_use`
 */
export async function freeSocket(path: string): Promise<void> {
  checkSocketPath(path);
  const there = statOf(path);
  if (there === null) return;
  if (!there.isSocket() || there.uid !== process.getuid?.()) {
    const what = there.isSocket() ? "a socket of another user" : "not a socket";
    const mend = "set --socket to a path of its own; it is left as it is";
    throw new ServiceError("data_dir_unusable", `${path} is ${what}`, { mend });
  }
  if (await answers(path)) {
    const message = `another server listens on ${path}`;
    throw new ServiceError("data_dir_in_use", message, { mend: "stop it, or set --socket" });
  }
  unlinkSync(path);
}

/** What can be seen of a socket's path before it is made. @throws ServiceError `data_dir_unusable` */
export function checkSocketPath(path: string): void {
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH) {
    const message = `the socket path ${path} is longer than ${MAX_SOCKET_PATH} bytes`;
    throw new ServiceError("data_dir_unusable", message, { mend: "set a shorter --socket" });
  }
  checkFolder(dirname(path));
}

function checkFolder(folder: string): void {
  const there = statSync(folder, { throwIfNoEntry: false });
  const isOurs = there?.uid === process.getuid?.();
  if (there?.isDirectory() && isOurs && (there.mode & 0o077) === 0) return;
  const refuse = (why: string, mend: string) => {
    const message = `the socket's folder ${folder} ${why}`;
    throw new ServiceError("data_dir_unusable", message, { mend });
  };
  if (!there?.isDirectory()) refuse("does not exist", `make it: mkdir -m 700 ${folder}`);
  if (!isOurs) refuse("belongs to another user", "set --data-dir or --socket to a folder of yours");
  refuse("is open to other users", `close it: chmod 700 ${folder}`);
}

function statOf(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

async function answers(path: string): Promise<boolean> {
  const options = { unix: path, signal: AbortSignal.timeout(2000) };
  return fetch("http://localhost/healthz", options).then(
    () => true,
    // Who listens and is slow to answer is there; a dead socket refuses at once.
    (error: Error) => error.name === "TimeoutError",
  );
}

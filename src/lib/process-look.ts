import { allPids, mountsOf, namespaceOf, sessionOf } from "./proc.ts";

type Namespace = { mounts: string; pids: number[] };

/** What one pass over all processes sees of them: all of /proc is read, without waiting. */
export class ProcessLook {
  readonly #pids = new Set<number>();
  readonly #sessions = new Map<number, number[]>();
  #namespaces: Namespace[] | null = null;

  constructor() {
    for (const pid of allPids()) {
      const session = sessionOf(pid);
      if (session === null) continue;
      this.#pids.add(pid);
      const members = this.#sessions.get(session);
      if (members) members.push(pid);
      else this.#sessions.set(session, [pid]);
    }
  }

  /** One that is not seen was over when the look ended, or began after it. */
  sees(pid: number): boolean {
    return this.#pids.has(pid);
  }

  inSession(session: number): number[] {
    return this.#sessions.get(session) ?? [];
  }

  /**
   * Processes that have something mounted from below a folder called `name`. Paths in mountinfo begin at the
   * root of their file system, hence no whole path.
   */
  mounting(name: string): number[] {
    this.#namespaces ??= namespacesOf(this.#pids);
    const found = this.#namespaces.filter(({ mounts }) => mounts.includes(`/${name}/`));
    return found.flatMap(({ pids }) => pids);
  }
}

/** All processes of a mount namespace have the same mounts, and to read those is what costs. */
function namespacesOf(pids: Iterable<number>): Namespace[] {
  const namespaces = new Map<string, Namespace>();
  for (const pid of pids) {
    const id = namespaceOf(pid, "mnt");
    if (id === null) continue;
    const namespace = namespaces.get(id) ?? { mounts: "", pids: [] };
    // It may have ended since the look at its namespace: then the next process of that tells.
    namespace.mounts ||= mountsOf(pid) ?? "";
    namespace.pids.push(pid);
    namespaces.set(id, namespace);
  }
  return [...namespaces.values()];
}

let next: Promise<ProcessLook> | null = null;
/** When the last look was over, and how long it took. Units: milliseconds. */
let last = { atMs: 0, tookMs: 0 };

/**
 * One look for all who ask before it begins, so that sandboxes that end at once do not cost one each. It begins
 * after the call, and so sees what the caller has done.
 */
export function lookAtProcesses(): Promise<ProcessLook> {
  next ??= restAfterLast().then(() => {
    next = null;
    const startMs = performance.now();
    const look = new ProcessLook();
    const atMs = performance.now();
    last = { atMs, tookMs: atMs - startMs };
    return look;
  });
  return next;
}

/** As long as the last look took: of many that end at once more find theirs in the next one, and the thread does other work. */
function restAfterLast(): Promise<void> {
  const waitMs = last.atMs + last.tookMs - performance.now();
  return new Promise((resolve) => {
    if (waitMs > 0) setTimeout(resolve, waitMs);
    else setImmediate(resolve);
  });
}

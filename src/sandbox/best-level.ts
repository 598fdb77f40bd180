import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import { endSandbox } from "./end.ts";
import type { IsolationLevel, SandboxHandle, SandboxSpec } from "./sandbox.ts";
import { StarterExited } from "./start.ts";

type StartAt = (
  level: IsolationLevel,
  spec: SandboxSpec,
  signal: AbortSignal,
) => Promise<SandboxHandle>;

/**
 * Starts at level A, or at B once the node has shown that it gives no more. The level is in the handle, so
 * that nothing degrades silently.
 */
export class BestLevel {
  readonly #options: { dataDir: string; minIsolation: IsolationLevel };
  readonly #startAt: StartAt;
  /** What the node said when it gave no network namespace. Null: it has given all so far. */
  #withoutNetwork: string | null = null;
  #probing: Promise<string | null> | null = null;

  constructor(options: { dataDir: string; minIsolation: IsolationLevel }, startAt: StartAt) {
    this.#options = options;
    this.#startAt = startAt;
  }

  /** @throws ServiceError `sandbox_unavailable` for a node below `minIsolation`, and what `startAt` throws. */
  async start(spec: SandboxSpec, signal: AbortSignal): Promise<SandboxHandle> {
    if (this.#withoutNetwork === null) {
      try {
        return await this.#startAt("A", spec, signal);
      } catch (error) {
        if (!(error instanceof StarterExited)) throw error;
        this.#probing ??= this.#probe(spec).finally(() => (this.#probing = null));
        this.#withoutNetwork = await abortable(this.#probing, signal);
        if (this.#withoutNetwork === null) throw error;
      }
    }
    if (this.#options.minIsolation === "A") throw belowA(this.#withoutNetwork);
    return await this.#startAt("B", spec, signal);
  }

  /**
   * Whether a start failed for want of a network namespace: then an image with nothing in it fails in the
   * same way, and starts without one. It costs nothing where starts succeed.
   */
  async #probe(spec: SandboxSpec): Promise<string | null> {
    const empty = { ...spec, id: "probe", image: await emptyImage(this.#options.dataDir) };
    if ((await this.#refusal("A", empty)) === null) return null;
    if ((await this.#refusal("B", empty)) !== null) return null;
    // Once more, so that a moment's trouble does not cost the node its level for good.
    return await this.#refusal("A", empty);
  }

  /** Null: it starts. */
  async #refusal(level: IsolationLevel, spec: SandboxSpec): Promise<string | null> {
    try {
      // Of nobody's job: several may wait for it.
      const handle = await this.#startAt(level, spec, new AbortController().signal);
      await endSandbox(handle);
      return null;
    } catch (error) {
      if (error instanceof StarterExited) return error.message;
      throw error;
    }
  }
}

function belowA(why: string): ServiceError {
  const what = "this node gives no network namespace: isolation is B, and min_isolation is A";
  return new ServiceError("sandbox_unavailable", `${what} (${why})`, {
    mend: "Raise user.max_net_namespaces (sysctl, by an administrator), or set min_isolation to B.",
  });
}

/** Enough of a root for the supervisor, which needs nothing of it. */
export async function emptyImage(dataDir: string): Promise<string> {
  const image = join(dataDir, "assets", "empty-image");
  const folders = ["bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr", "var/tmp"];
  for (const folder of folders) {
    await mkdir(join(image, folder), { recursive: true, mode: 0o700 });
  }
  return image;
}

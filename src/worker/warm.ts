import type { WarmSandbox, WarmUp } from "../pipeline/messages.ts";
import { attachSandbox } from "../sandbox/attach.ts";
import { dropImageLock } from "../sandbox/end.ts";
import type { SandboxDriver, SandboxHandle, SandboxSpec } from "../sandbox/sandbox.ts";
import type { SandboxParts } from "./stage-sandboxes.ts";

/** Starts a sandbox that no job has asked for. Null where it does not start: a job will say why. */
export async function warmUp(
  { id, image }: WarmUp,
  { settings, driver, images }: Pick<SandboxParts, "settings" | "driver" | "images">,
): Promise<WarmSandbox | null> {
  const signal = AbortSignal.timeout(settings.sandbox.startTimeoutMs);
  const { writable, ...limits } = settings.sandbox;
  try {
    const { path, lock } = await images.acquire(image || (settings.defaultImage ?? ""), signal);
    using held = lock;
    const spec: SandboxSpec = { id, image: path, writable, limits };
    const handle = await driver.start(spec, signal);
    if (held) handle.imageLock = { file: held.path, fd: held.detach() };
    return { handle, spec };
  } catch {
    return null;
  }
}

/**
 * A driver whose first start of a sandbox like `warm` gives that one: of the same files, by the same limits,
 * alive, and never used. What it turns out not to be is ended.
 */
export class WarmDriver implements SandboxDriver {
  readonly name;
  readonly #driver: SandboxDriver;
  readonly #end: (handle: SandboxHandle) => Promise<void>;
  #warm: WarmSandbox | null;

  constructor(
    driver: SandboxDriver,
    warm: WarmSandbox | null,
    end: (handle: SandboxHandle) => Promise<void>,
  ) {
    this.name = driver.name;
    this.#driver = driver;
    this.#end = end;
    this.#warm = warm;
  }

  async start(spec: SandboxSpec, signal: AbortSignal): Promise<SandboxHandle> {
    const warm = this.#warm;
    if (warm === null) return await this.#driver.start(spec, signal);
    if (
      Bun.deepEquals({ ...warm.spec, id: spec.id }, spec) &&
      (await answers(warm.handle, signal))
    ) {
      this.#warm = null;
      // Whoever starts a sandbox gives it the image's lock that it holds itself.
      dropImageLock(warm.handle);
      return warm.handle;
    }
    await this.endUnused();
    return await this.#driver.start(spec, signal);
  }

  /** Call when the job is done: it may not have come to need one. */
  async endUnused(): Promise<void> {
    const warm = this.#warm;
    this.#warm = null;
    if (warm) await this.#end(warm.handle);
  }
}

async function answers(handle: SandboxHandle, signal: AbortSignal): Promise<boolean> {
  try {
    const sandbox = await attachSandbox(handle, signal);
    await sandbox.detach();
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

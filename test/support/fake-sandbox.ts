import type {
  CellResult,
  CommandOptions,
  CommandResult,
  Python,
  Sandbox,
  SandboxHandle,
  Shell,
} from "../../src/sandbox/sandbox.ts";
import type { Watch } from "../../src/sandbox/watchdog.ts";

export function fakeHandle(id: string): SandboxHandle {
  const holder = { holderPid: 1, holderStartTime: "1", starterPid: 1, starterStartTime: "1" };
  const control = { controlFd: -1, controlSocket: "none" };
  return { id, driver: "host", dir: `/none/${id}`, ...control, ...holder, isolation: null };
}

/** A watch that never finds anything. */
export function unwatched(): Watch {
  const peak = { memoryBytes: 0, processes: 0 };
  return { peak, crossed: new AbortController().signal, [Symbol.dispose]: () => {} };
}

type Asked = { text: string } & CommandOptions;

/** A sandbox whose shell and Python answer what the test says, and which dies when the test says so. */
export class FakeSandbox implements Sandbox {
  readonly handle: SandboxHandle;
  readonly commands: Asked[] = [];
  readonly cells: Asked[] = [];
  shells = 0;
  left: Shell["left"] = null;
  pythons = 0;
  detached = false;
  onCommand: (asked: Asked) => Promise<Partial<CommandResult>> = async () => ({});
  onCell: (asked: Asked) => Promise<Partial<CellResult>> = async () => ({});
  onDetach: () => Promise<void> = async () => {};
  readonly #death = new AbortController();

  constructor(id = "fake") {
    this.handle = fakeHandle(id);
  }

  get died(): AbortSignal {
    return this.#death.signal;
  }

  die(reason: unknown): void {
    this.#death.abort(reason);
  }

  async shell(): Promise<Shell> {
    this.shells++;
    const answer = async (text: string, options: CommandOptions) => {
      this.commands.push({ text, ...options });
      const result = await this.onCommand({ text, ...options });
      const ended = { exitCode: 0, timedOut: false, running: false, shellReplaced: false };
      const where = { cwd: "/work", python: "" };
      return { output: "", ...where, ...ended, cutBytes: 0, durationMs: 1, ...result };
    };
    const fake = this;
    return {
      get left() {
        return fake.left;
      },
      run: answer,
      resume: answer,
      close: async () => {},
    };
  }

  async python(): Promise<Python> {
    this.pythons++;
    return {
      run: async (text, options) => {
        this.cells.push({ text, ...options });
        const result = await this.onCell({ text, ...options });
        const ended = { ok: true, timedOut: false, restarted: false };
        const rest = { images: [], cwd: "", python: "", cutBytes: 0, durationMs: 1 };
        return { output: "", ...ended, ...rest, ...result };
      },
      close: async () => {},
    };
  }

  exec(): Promise<never> {
    throw new Error("the fake sandbox executes nothing");
  }

  run(): Promise<never> {
    throw new Error("the fake sandbox executes nothing");
  }

  runAlone(): Promise<never> {
    throw new Error("the fake sandbox executes nothing");
  }

  give(): never {
    throw new Error("the fake sandbox has no files");
  }

  readTree(): never {
    throw new Error("the fake sandbox has no files");
  }

  writeTree(): Promise<never> {
    throw new Error("the fake sandbox has no files");
  }

  saveTree(): Promise<never> {
    throw new Error("the fake sandbox has no files");
  }

  readFile(): Promise<never> {
    throw new Error("the fake sandbox has no files");
  }

  writeFile(): Promise<never> {
    throw new Error("the fake sandbox has no files");
  }

  async detach(): Promise<void> {
    await this.onDetach();
    this.detached = true;
  }
}

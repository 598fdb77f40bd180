import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const FOLDER = join(import.meta.dir, "rivals");
const CACHE = process.env.ROLLOUTD_CACHE ?? join(cacheHome(), "rolloutd");

function cacheHome(): string {
  return process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
}

/** Measures itself, in a process of its own, so that its figures have nothing of ours in them. */
export class Rival implements AsyncDisposable {
  readonly #process: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #text = "";

  /** @param argv what runs a script of `rivals`. Null, and said so: it can't be had here. */
  static async start(name: string, argv: (string | null)[]): Promise<Rival | null> {
    if (argv.includes(null)) return null;
    const rival = new Rival(argv as string[]);
    try {
      await rival.#answer();
      return rival;
    } catch (error) {
      console.error(`bench: ${name} is absent: ${error}`);
      return null;
    }
  }

  private constructor(argv: string[]) {
    this.#process = Bun.spawn(argv, { cwd: FOLDER, stdio: ["pipe", "pipe", "inherit"] });
    this.#chunks = this.#process.stdout[Symbol.asyncIterator]();
  }

  /** Units: milliseconds of each exchange. */
  async round(exchanges: number): Promise<number[]> {
    this.#process.stdin.write(`${exchanges}\n`);
    this.#process.stdin.flush();
    return await this.#answer();
  }

  async #answer(): Promise<number[]> {
    while (!this.#text.includes("\n")) {
      const { value, done } = await this.#chunks.next();
      if (done) throw new Error(`it ended with ${await this.#process.exited}`);
      this.#text += Buffer.from(value).toString();
    }
    const [line = "", ...rest] = this.#text.split("\n");
    this.#text = rest.join("\n");
    return JSON.parse(line);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end();
    await this.#process.exited;
  }
}

/** A Python that has these packages, installed below the cache. Null, and said so, where that fails. */
export async function pythonWith(...packages: string[]): Promise<string | null> {
  const folder = join(CACHE, "bench", `venv-${Bun.hash(packages.join()).toString(36)}`);
  const python = join(folder, "bin/python");
  const done = join(folder, "installed");
  if (existsSync(done)) return python;
  const script = `set -e; rm -rf "$0"; mkdir -p "$(dirname "$0")"; python3 -m venv "$0"
"$0/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; touch "$0/installed"`;
  return (await said("bash", ["-c", script, folder, ...packages])) === null ? null : python;
}

export async function tmux(): Promise<string | null> {
  return await said("tmux", [], join(FOLDER, "tmux"));
}

/** What a program prints on its last line; null, and said so, where it fails. */
async function said(name: string, args: string[], program = name): Promise<string | null> {
  const run = Bun.spawn([program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const [out, problem] = await Promise.all([run.stdout.text(), run.stderr.text()]);
  if ((await run.exited) === 0) return out.trim().split("\n").at(-1) ?? "";
  console.error(`bench: ${args.at(-1) ?? name} is absent: ${problem.trim().split("\n").at(-1)}`);
  return null;
}

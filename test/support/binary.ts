import { join, resolve } from "node:path";

/** The compiled file, as users have it. `scripts/test` builds it before the tests run. */
export const BINARY = resolve(import.meta.dir, "../../dist/rolloutd");

/** What `scripts/setup` found or made on this machine. */
export function environment(
  name: "ROLLOUTD_APPTAINER" | "ROLLOUTD_BWRAP" | "ROLLOUTD_IMAGE",
): string {
  const value = process.env[name];
  if (value) return value;
  const file = join(import.meta.dir, "../../.tools/env");
  throw new Error(`${name} is not set: run ./scripts/setup, then \`source ${file}\``);
}

export type Finished = { stdout: string; stderr: string; exitCode: number };

type SpawnOptions = {
  env?: Record<string, string>;
  cwd?: string;
  prefix?: string[];
  /** Hears the process id. */
  started?: (pid: number) => void;
};

/** From another directory, with an environment of its own. */
function spawn(args: string[], { env = {}, cwd = "/", prefix = [] }: SpawnOptions) {
  const PATH = process.env.PATH ?? "/usr/bin:/bin";
  return Bun.spawn([...prefix, BINARY, ...args], {
    cwd,
    env: { PATH, HOME: "/nonexistent", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Runs the binary to its end. */
export async function run(args: string[], options: SpawnOptions = {}): Promise<Finished> {
  const child = spawn(args, options);
  options.started?.(child.pid);
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, exitCode };
}

export type Running = {
  pid: number;
  /** What it printed first: its address. */
  line: string;
  /** Everything it has written to standard error so far. */
  stderr(): string;
  signal(name: NodeJS.Signals): void;
  exited: Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Starts the binary and waits for its first line. Ended, and waited for, at the end of scope. */
export async function start(args: string[], options: SpawnOptions = {}): Promise<Running> {
  const child = spawn(args, options);
  let errors = "";
  const drained = (async () => {
    for await (const chunk of child.stderr) errors += Buffer.from(chunk).toString();
  })();
  const line = await firstLine(child.stdout);
  if (line === null) {
    await drained;
    throw new Error(`rolloutd ${args[0]} ended before it was ready: ${errors}`);
  }
  return {
    pid: child.pid,
    line,
    stderr: () => errors,
    signal: (name) => child.kill(name),
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | null> {
  const reader = stream.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) return null;
    text += Buffer.from(value).toString();
  }
  // The rest is read and dropped, so that the pipe never fills.
  (async () => {
    while (!(await reader.read()).done);
  })();
  return text.slice(0, text.indexOf("\n"));
}

export type Service = Running & { url: string; socket: string };

/** `rolloutd serve` on a free port. */
export async function serve(
  dataDir: string,
  flags: string[] = [],
  options: SpawnOptions = {},
): Promise<Service> {
  const own = ["serve", "--port", "0", "--data-dir", dataDir, "--json", "--log-level", "warn"];
  const running = await start([...own, ...driverFor(flags), ...flags], options);
  const { url, socket, pid } = JSON.parse(running.line) as Pick<Service, "url" | "socket" | "pid">;
  if (pid === running.pid) return { ...running, url, socket };
  // The program of `prefix` would die alone.
  const signal = (name: NodeJS.Signals) => void process.kill(pid, name);
  return {
    ...{ ...running, url, socket, pid, signal },
    async [Symbol.asyncDispose]() {
      signal("SIGTERM");
      await running.exited;
    },
  };
}

/** A service that names neither program nor driver is one of a test that needs no sandbox. */
function driverFor(flags: string[]): string[] {
  const named = ["--driver", "--apptainer", "--config"].some((flag) => flags.includes(flag));
  return named ? [] : ["--driver", "none"];
}

/** Flags for a service whose sandboxes one of the drivers makes. */
export function driverFlags(driver: string): string[] {
  const bwrap = driver === "bubblewrap" ? ["--bwrap", environment("ROLLOUTD_BWRAP")] : [];
  return ["--driver", driver, ...bwrap];
}

/** Flags for a service that makes real sandboxes. */
export function sandboxFlags(): string[] {
  const image = ["--image", environment("ROLLOUTD_IMAGE")];
  return [...image, "--apptainer", environment("ROLLOUTD_APPTAINER")];
}

/** `rolloutd simulate` with a scripted policy: pairs of what a prompt contains and the turns to play. */
export async function simulate(
  folder: string,
  scripts: { match: string; variants: unknown[][] }[],
  flags: string[] = [],
): Promise<Running & { url: string }> {
  const policy = join(folder, "policy.jsonl");
  await Bun.write(policy, scripts.map((script) => `${JSON.stringify(script)}\n`).join(""));
  const running = await start(["simulate", "--port", "0", "--policy", policy, ...flags]);
  return { ...running, url: running.line };
}

/** A turn of a scripted policy that calls one tool. */
export function turn(name: string, args: Record<string, unknown>) {
  return { tool_calls: [{ name, arguments: args }] };
}

/** A DeepScaleR row whose problem is `problem`. */
export function mathRow(problem: string, truth: string) {
  return {
    data_source: "deepscaler",
    prompt: [{ role: "user", content: problem }],
    reward_model: { ground_truth: truth },
  };
}

import { mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

export const BINARY = resolve(import.meta.dir, "../dist/rolloutd");

type Started = { url: string; socket: string; pid: number };

/** The compiled service in a process of its own, as users run it; gone at the end of scope. */
export async function startBinary(
  flags: string[],
): Promise<AsyncDisposable & Started & { dataDir: string }> {
  const dataDir = mkdtempSync("/var/tmp/rb-");
  const own = ["--port", "0", "--data-dir", dataDir, "--log-level", "warn", "--json"];
  const child = Bun.spawn([BINARY, "serve", ...own, ...flags], {
    stdout: "pipe",
    stderr: "inherit",
    cwd: "/",
  });
  const started = JSON.parse(await firstLine(child.stdout)) as Started;
  return {
    ...started,
    dataDir,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.exited;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The simulated engine, replaying `policy`. */
export async function startEngine(flags: string[]): Promise<AsyncDisposable & { url: string }> {
  const child = Bun.spawn([BINARY, "simulate", "--port", "0", "--json", ...flags], {
    stdout: "pipe",
    stderr: "inherit",
    cwd: "/",
  });
  const { url } = JSON.parse(await firstLine(child.stdout)) as { url: string };
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the process ended before it was ready: ${text}`);
    text += new TextDecoder().decode(value);
  }
  // The rest is read and dropped, so that the pipe never fills.
  (async () => {
    while (!(await reader.read()).done);
  })();
  return text.slice(0, text.indexOf("\n"));
}

/** What `scripts/setup` found or made. */
export function environment(name: "ROLLOUTD_APPTAINER" | "ROLLOUTD_IMAGE"): string {
  const value = process.env[name];
  if (value) return value;
  const file = join(import.meta.dir, "../.tools/env");
  throw new Error(`${name} is not set; run ./scripts/setup and \`source ${file}\` first`);
}

import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RolloutView } from "../../src/protocol/view.ts";
import {
  driverFlags,
  mathRow,
  run,
  sandboxFlags,
  serve,
  simulate,
  turn,
} from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { processesOf } from "../support/traces.ts";

/**
 * What model-written code can do to find secrets: variables, command lines and memory of every process that it sees, and
 * every file that it can read. The needle comes backwards, so that the search does not find itself.
 */
const SEARCH = (needle: string) => `import os
needle = "${[...needle].reverse().join("")}"[::-1].encode()
found, looked = [], 0
def look(name, read):
    global looked
    try:
        data = read()
    except OSError:
        return
    looked += 1
    if needle in data: found.append(name)
def whole(path): return lambda: open(path, "rb").read(5_000_000)
def memory(pid):
    data = b""
    with open(f"/proc/{pid}/mem", "rb") as mem:
        for line in open(f"/proc/{pid}/maps"):
            span, mode = line.split()[:2]
            if mode[0] != "r" or "[v" in line: continue
            start, end = (int(part, 16) for part in span.split("-"))
            mem.seek(start)
            data += mem.read(min(end - start, 5_000_000))
    return data
own = {os.getpid(), os.getppid()}
for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
    for name in ("environ", "cmdline", "mountinfo", "stack"): look(f"{pid} {name}", whole(f"/proc/{pid}/{name}"))
    if pid not in own: look(f"{pid} memory", lambda: memory(pid))
for top, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if f"{top}/{name}" not in ("//proc", "//sys", "//usr")]
    for name in files:
        path = os.path.join(top, name)
        if os.path.isfile(path): look(path, whole(path))
print("clean" if not found and looked > 20 else (found, looked))`;

/** Every file below a folder that is one, with what is in it. */
function filesBelow(folder: string): [string, Buffer][] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
    .map((path) => [path, readFileSync(path)]);
}

test.each(["apptainer", "bubblewrap"] as const)(
  "P16: no secret of the service is in a sandbox of %s, a trajectory, an answer, the log, the data folder or a command line",
  async (driver) => {
    using dir = tempDir();
    using state = tempDir();
    const data = state.path;
    const hush = `hush-${randomBytes(12).toString("hex")}`;
    const secret = (name: string) => `${name}-${hush}`;
    const file = (name: string) => {
      writeFileSync(dir.file(name), `${secret(name)}\n`, { mode: 0o600 });
      return dir.file(name);
    };
    const scripts = [
      turn("execute_ipython_cell", { code: SEARCH(hush) }),
      turn("finish", { message: "\\boxed{{{observation}}}" }),
    ];
    await using engine = await simulate(dir.path, [{ match: "secrets", variants: [scripts] }]);
    const keys: (string | null)[] = [];
    // The engine's key has to come to it, and to it alone.
    await using gate = Bun.serve({
      ...{ hostname: "127.0.0.1", port: 0 },
      fetch(request) {
        keys.push(request.headers.get("authorization"));
        const { pathname, search } = new URL(request.url);
        const to = new URL(pathname + search, engine.url);
        return fetch(to, { method: request.method, body: request.body });
      },
    });
    const flags = [
      ...[...sandboxFlags(), ...driverFlags(driver)],
      ...["--backend", `http://127.0.0.1:${gate.port}/v1`, "--api-key-env", "ENGINE_KEY"],
      ...["--token-file", file("token"), "--callback-secret-file", file("callback")],
      ...["--judge-api-key-env", "JUDGE_KEY", "--judge-url", "http://127.0.0.1:1/v1"],
      ...["--judge-model", "m", "--log-level", "info"],
    ];
    const env = Object.fromEntries(
      ["ENGINE_KEY", "JUDGE_KEY", "AWS_SECRET_ACCESS_KEY"].map((name) => [name, secret(name)]),
    );
    const answers: [string, string][] = [];
    let log = "";
    {
      await using service = await serve(data, flags, { env });
      const ask = async (path: string, body?: unknown) => {
        const init = body ? { method: "POST", body: JSON.stringify(body) } : {};
        const response = await fetch(`http://localhost${path}`, { ...init, unix: service.socket });
        const text = await response.text();
        answers.push([path, text]);
        return { status: response.status, text };
      };
      const row = { id: "a", instance: mathRow("Find the secrets.", "clean") };
      const { text } = await ask("/v1/rollouts?wait_ms=50000", row);
      const { final_message, reward } = JSON.parse(text) as RolloutView;
      expect([final_message, reward]).toEqual(["\\boxed{clean}", 1]);
      // A key that a request names is sent nowhere, and what it says of it is nothing.
      const stolen = {
        url: `http://127.0.0.1:${gate.port}/v1`,
        api_key_env: "AWS_SECRET_ACCESS_KEY",
      };
      expect((await ask("/v1/backends", stolen)).status).toBe(400);
      await ask("/v1/rollouts", { ...row, id: "b", callback_url: "http://127.0.0.1:1/" });
      for (const path of ["rollouts/a", "rollouts/a/trajectory", "rollouts/a/timeline", "backends"])
        await ask(`/v1/${path}`);
      for (const path of ["/v1/rollouts", "/v1/status", "/metrics", "/readyz"]) await ask(path);
      const wrong = await fetch(`${service.url}/v1/status`, {
        headers: { authorization: `Bearer ${secret("wrong")}` },
      });
      answers.push(["wrong token", await wrong.text()]);
      for (const command of [
        ["jobs", "get", "a"],
        ["backends", "list", "--json"],
      ]) {
        const { stdout, stderr } = await run([...command, "--server", service.socket], { env });
        answers.push([command.join(" "), stdout + stderr]);
      }
      answers.push(["processes", processesOf(data).join("\n")]);
      service.signal("SIGTERM");
      await service.exited;
      log = service.stderr();
    }
    expect(new Set(keys)).toEqual(new Set([`Bearer ${secret("ENGINE_KEY")}`]));
    expect(log).toContain("took over the data folder");
    const places = [...answers, ["log", log] as const, ...filesBelow(data)];
    expect(places.length).toBeGreaterThan(12);
    expect(places.filter(([, text]) => text.includes(hush)).map(([name]) => name)).toEqual([]);
  },
  90_000,
);

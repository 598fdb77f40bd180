import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { z } from "zod";
import { UsageError } from "../../src/cli/flags.ts";
import { CHECKS, NAMELESS, preflight } from "../../src/cli/preflight.ts";
import { loadConfig } from "../../src/config/config.ts";
import { flagOf, SETTINGS, type SettingName, variableOf } from "../../src/config/settings.ts";
import { brokenPrograms } from "../sandbox/broken-programs.ts";
import { environment } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";

type Flags = Partial<Record<SettingName, unknown>>;

async function refusalOf(flags: Flags, env: Record<string, string> = {}): Promise<string> {
  using dir = tempDir();
  const own = {
    data_dir: dir.file("data"),
    image_cache: dir.file("cache"),
    port: 0,
    driver: "none",
  };
  const config = loadConfig({ env: {}, flags: { ...own, ...flags } });
  try {
    await preflight(config, env);
  } catch (error) {
    // The database is opened behind this.
    expect(existsSync(dir.file("data/rolloutd.db"))).toBe(false);
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  return "";
}

test("every setting that is a text is looked at, or known to name nothing", () => {
  const texts = (Object.keys(SETTINGS) as SettingName[]).filter((name) => {
    const { schema } = SETTINGS[name];
    return schema.safeParse("/a/path").success || schema instanceof z.ZodString;
  });
  const decided = [...Object.keys(CHECKS), ...NAMELESS];
  expect(texts.filter((name) => !decided.includes(name))).toEqual([]);
});

describe("what a setting names and is not there, or can't be used, refuses the start", () => {
  const each = (folder: string): [SettingName, unknown, Flags?][] => {
    const file = (name: string, text = "x", mode = 0o600) => {
      const path = `${folder}/${name}`;
      writeFileSync(path, text, { mode });
      chmodSync(path, mode);
      return path;
    };
    const empty = `${folder}/empty`;
    mkdirSync(empty);
    const none = `${folder}/none`;
    const plain = file("plain");
    const paths: SettingName[] = [
      ...(["token_file", "rows_dir", "tasks", "mcp_servers", "callback_secret_file"] as const),
    ];
    const sandboxed = { driver: "apptainer", apptainer: environment("ROLLOUTD_APPTAINER") };
    const model = { backend: "http://127.0.0.1:1/v1" };
    const tls = { tls_key: plain };
    return [
      ...paths.flatMap((name): [SettingName, unknown][] => [
        [name, none],
        [name, name === "rows_dir" ? plain : empty],
      ]),
      ["tls_cert", none, tls],
      ["tls_cert", empty, tls],
      ["host", "nowhere.invalid"],
      ["host", "8.8.8.8", { allow_anonymous: true }],
      ["data_dir", plain],
      ["data_dir", "/proc/none"],
      ["socket", `${none}/s`],
      ["socket", `${folder}/${"s".repeat(120)}`],
      ["image_cache", plain, sandboxed],
      ["image", none, sandboxed],
      ["image", empty, sandboxed],
      ["image", plain, sandboxed],
      ["image", "no-such-name", sandboxed],
      ["image", `docker-archive:${none}`, sandboxed],
      ["image", "no image at all", sandboxed],
      ["task_images", "none=/x", sandboxed],
      ["task_images", `math=${none}`, sandboxed],
      ["task_images", "math", sandboxed],
      ["apptainer", none, { driver: "apptainer" }],
      ["bwrap", none, { driver: "bubblewrap" }],
      ["model_dir", none, model],
      ["model_dir", empty, model],
      ["api_key_env", "NO_SUCH_VARIABLE", model],
      ["backend_key_envs", "PATH_OF_NOTHING"],
      ["judge_api_key_env", "NO_SUCH_VARIABLE", { judge_url: "http://j", judge_model: "j" }],
      ["search_api_key_env", "NO_SUCH_VARIABLE", { search_url: "http://s" }],
      ["reward_servers", "ftp://x"],
      ["task_urls", "not a url"],
      ["backend", "http://127.0.0.1:1/v1"],
      ["backend", "http://nowhere.invalid/v1"],
    ];
  };

  test("and is named with its flag and value", async () => {
    using dir = tempDir();
    for (const [name, value, others = {}] of each(dir.path)) {
      const why = await refusalOf({ ...others, [name]: value });
      expect([name, value, why]).toEqual([name, value, expect.stringContaining(flagOf(name))]);
      expect([name, value, why]).toEqual([name, value, expect.stringContaining(String(value))]);
    }
  });

  test("or with its variable, where that has set it", async () => {
    const why = await refusalOf({ rows_dir: "/none" }, { [variableOf("rows_dir")]: "/none" });
    expect(why).toStartWith("ROLLOUTD_ROWS_DIR /none: there is no such folder; name a folder");
  });

  test.each(["apptainer", "bubblewrap"] as const)(
    "such as a program of %s that can't be run",
    async (driver) => {
      using dir = tempDir();
      const name = driver === "apptainer" ? "apptainer" : "bwrap";
      for (const [what, path, said] of brokenPrograms(dir.path)) {
        const why = await refusalOf({ driver, [name]: path });
        expect([what, why]).toEqual([what, expect.stringMatching(said)]);
        expect(why).toContain("--driver none");
      }
    },
  );

  test("such as a tool server's program, or its task kind", async () => {
    using dir = tempDir();
    const ask = async (server: object) => {
      writeFileSync(dir.file("m"), JSON.stringify({ mcpServers: { s: server } }));
      return await refusalOf({ mcp_servers: dir.file("m") });
    };
    expect(await ask({ command: "/no/such/server" })).toContain("/no/such/server is not there");
    const unknown = { command: "true", task_kinds: ["maths"] };
    expect(await ask(unknown)).toContain('the task kind "maths", which is not there');
    expect(await ask({ command: "true", task_kinds: ["math"] })).toBe("");
  });

  test("such as a port that another program has, or a host that is a folder of links", async () => {
    using dir = tempDir();
    symlinkSync("loop", dir.file("loop"));
    expect(await refusalOf({ rows_dir: dir.file("loop") })).toContain("ELOOP");
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { port: number };
    expect(await refusalOf({ port })).toContain(`127.0.0.1:${port} is in use; choose another`);
    other.close();
  });
});

test.each([
  ["judge_model", "judge_url"],
  ["tls_cert", "tls_key"],
  ["tls_key", "tls_cert"],
  ["model", "backend"],
] as const)("%s without %s, which would be ignored, is refused", async (name, needed) => {
  expect(await refusalOf({ [name]: "x" })).toContain(
    `${flagOf(name)} x: has no effect without ${flagOf(needed)}`,
  );
});

test("a service without sandboxes is one that says so, and needs neither program nor image", async () => {
  expect(await refusalOf({})).toBe("");
  const { PATH } = process.env;
  process.env.PATH = "/nonexistent";
  try {
    const why = await refusalOf({ driver: "apptainer" });
    expect(why).toContain("--driver apptainer: there is no program apptainer");
    expect(why).toContain("--driver none (ROLLOUTD_DRIVER=none) serves without sandboxes");
  } finally {
    process.env.PATH = PATH;
  }
});

import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { loadConfig, misspelt } from "../../src/config/config.ts";
import { flagOf, SETTINGS, variableOf } from "../../src/config/settings.ts";
import { failureOf } from "../support/failure.ts";

const NOTHING = { env: {}, flags: {} };

describe("settings", () => {
  test("have their defaults where nothing is set", () => {
    const config = loadConfig(NOTHING);
    const defaults = Object.entries(SETTINGS).map(([name, { fallback }]) => [name, fallback]);
    expect(config).toEqual(Object.fromEntries(defaults));
    expect([config.host, config.port]).toEqual(["127.0.0.1", 8006]);
  });

  test("come from the file, over it from the environment, over both from flags", () => {
    const file = { port: 1, run_slots: 1, eval_slots: 1 };
    const env = { ROLLOUTD_PORT: "2", ROLLOUTD_RUN_SLOTS: "2", RUN_SLOTS: "9" };
    const { port, run_slots, eval_slots } = loadConfig({ file, env, flags: { port: "3" } });
    expect({ port, run_slots, eval_slots }).toEqual({ port: 3, run_slots: 2, eval_slots: 1 });
  });

  test("are numbers and truths also where they were set as text", () => {
    const env = {
      ROLLOUTD_PORT: "0",
      ROLLOUTD_SANDBOX_TMPFS_BYTES: "1048576",
      ROLLOUTD_ALLOW_HOST_DRIVER: "yes",
    };
    const { port, sandbox_tmpfs_bytes, allow_host_driver } = loadConfig({ env, flags: {} });
    expect([port, sandbox_tmpfs_bytes, allow_host_driver]).toEqual([0, 1_048_576, true]);
    const off = loadConfig({ env: { ROLLOUTD_ALLOW_HOST_DRIVER: "0" }, flags: {} });
    expect(off.allow_host_driver).toBe(false);
  });

  test("take what they are by default also as the text of a flag or variable", () => {
    for (const [name, { fallback }] of Object.entries(SETTINGS)) {
      if (fallback === undefined) continue;
      const config = loadConfig({ env: { [variableOf(name)]: String(fallback) }, flags: {} });
      expect([name, config[name as keyof typeof config]]).toEqual([name, fallback]);
    }
  });

  test("have folders from the working directory on, as absolute paths", () => {
    const { data_dir, image_cache } = loadConfig({
      env: { ROLLOUTD_IMAGE_CACHE: "./images" },
      flags: { data_dir: "data" },
    });
    expect([data_dir, image_cache]).toEqual([resolve("data"), resolve("images")]);
  });

  test("have a flag and a variable named after them", () => {
    expect([flagOf("data_dir"), variableOf("data_dir")]).toEqual([
      "--data-dir",
      "ROLLOUTD_DATA_DIR",
    ]);
  });

  test("each say what they mean", () => {
    const silent = Object.entries(SETTINGS).filter(([, { doc }]) => doc.length < 10);
    expect(silent).toEqual([]);
  });
});

describe("a wrong value is refused with where it was set", () => {
  const refusal = async (inputs: Partial<Parameters<typeof loadConfig>[0]>) => {
    const { code, message, field } = await failureOf(() => loadConfig({ ...NOTHING, ...inputs }));
    return [code, message.split(": ")[0], field];
  };

  test.each([
    [{ flags: { port: "http" } }, "--port http", "port"],
    [{ flags: { port: "65536" } }, "--port 65536", "port"],
    [{ flags: { data_dir: "" } }, '--data-dir ""', "data_dir"],
    // A timer that is set to 30 days is over at once.
    [{ flags: { carry_limit_ms: "2592000000" } }, "--carry-limit-ms 2592000000", "carry_limit_ms"],
    [{ env: { ROLLOUTD_RUN_SLOTS: "0" } }, "ROLLOUTD_RUN_SLOTS 0", "run_slots"],
    [{ env: { ROLLOUTD_RUN_SLOTS: "1.5" } }, "ROLLOUTD_RUN_SLOTS 1.5", "run_slots"],
    [
      { env: { ROLLOUTD_ALLOW_HOST_DRIVER: "maybe" } },
      "ROLLOUTD_ALLOW_HOST_DRIVER maybe",
      "allow_host_driver",
    ],
    [{ file: { driver: "docker" } }, "driver in the configuration file docker", "driver"],
    [{ file: { host: 5 } }, "host in the configuration file 5", "host"],
  ])("%j", async (inputs, source, field) => {
    expect(await refusal(inputs)).toEqual(["invalid_field", source, field]);
  });

  test("and the value behind it does not hide it", async () => {
    const inputs = { flags: { port: "x" }, env: { ROLLOUTD_PORT: "5" }, file: { port: 6 } };
    expect(await refusal(inputs)).toEqual(["invalid_field", "--port x", "port"]);
  });
});

test("a key of the file that is no setting is refused: it may be a misspelt one", async () => {
  const file = { port: 1, run_slot: 4 };
  expect(await failureOf(() => loadConfig({ ...NOTHING, file }))).toEqual({
    code: "unknown_field",
    message: "the configuration file has an unknown key: run_slot",
    boundary: "client",
    retryable: false,
    field: "run_slot",
    mend: "did you mean run_slots?",
  });
  const other = await failureOf(() => loadConfig({ ...NOTHING, file: { colour: 1 } }));
  expect(other.mend).toBe("`rolloutd serve --help` lists the settings");
});

test("a variable that was probably meant to be a setting's is told, and others are not", () => {
  const env = { ROLLOUTD_RUN_SLOTZ: "9", ROLLOUTD_SERVER: "s", ROLLOUTD_PORT: "1", RUN_SLOT: "2" };
  expect(misspelt({ ...env, ROLLOUTD_OF_SOMEBODY: "x", ROLLOUTD_CACHE: "c" })).toEqual([
    ["ROLLOUTD_RUN_SLOTZ", "ROLLOUTD_RUN_SLOTS"],
  ]);
});

test.each([
  ["run_slots", "many", "must be a whole number of at least 1"],
  ["run_slots", "0", "must be a whole number of at least 1"],
  ["port", "70000", "must be a whole number of at least 0 and at most 65535"],
  ["backend", "127.0.0.1:8000", "must be an http: or https: URL, such as http://127.0.0.1:8000/v1"],
  [
    "backend",
    "localhost:8000/v1",
    "must be an http: or https: URL, such as http://127.0.0.1:8000/v1",
  ],
])("%s %s is refused with what it has to be", async (name, value, why) => {
  const { message } = await failureOf(() => loadConfig({ env: {}, flags: { [name]: value } }));
  expect(message).toBe(`${flagOf(name)} ${value}: ${why}`);
});

test.each([
  [{ env: { ROLLOUTD_PORT: "" } }, "port"],
  [{ file: { run_slots: true } }, "run_slots"],
  [{ file: { constructor: 1 } }, "constructor"],
])("%j is refused, not taken for something else", async (inputs, field) => {
  const failure = await failureOf(() => loadConfig({ env: {}, flags: {}, ...inputs }));
  expect(failure.field).toBe(field);
});

import { describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { BACKENDS_FLAGS, BACKENDS_USES } from "../../src/cli/backends.ts";
import type { CliContext } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { dispatch } from "../../src/cli/dispatch.ts";
import { IMAGES_FLAGS, IMAGES_USES } from "../../src/cli/images.ts";
import { JOBS_FLAGS, JOBS_USES } from "../../src/cli/jobs.ts";
import { CHECKS } from "../../src/cli/preflight.ts";
import { PRORL_FLAGS } from "../../src/cli/prorl.ts";
import { RUN_FLAGS } from "../../src/cli/run-flags.ts";
import { SIMULATE_OPTIONS } from "../../src/cli/simulate-options.ts";
import { flagOf, SETTINGS, type SettingName } from "../../src/config/settings.ts";
import { terminalText } from "../../src/lib/terminal-text.ts";
import { tempDir } from "../support/temp-dir.ts";

const context: CliContext = {
  spawnWorker() {
    throw new Error("a service was started");
  },
};

type End = { exitCode: number; stdout: string; stderr: string };

/** In this process, as `main.ts` does it. */
async function run(argv: string[]): Promise<End> {
  const written = { stdout: "", stderr: "" };
  const streams = ["stdout", "stderr"] as const;
  const real = streams.map((name) => process[name].write);
  for (const name of streams) {
    process[name].write = ((text: string) => {
      written[name] += text;
      return true;
    }) as never;
  }
  try {
    return { exitCode: await dispatch(argv, context), ...written };
  } finally {
    for (const [index, name] of streams.entries()) process[name].write = real[index] as never;
  }
}

/** Refused as a mistake of the command line: in one plain line that names what is wrong. */
async function expectRefusal(argv: string[], named: string): Promise<void> {
  const { exitCode, stdout, stderr } = await run(argv);
  const line = stderr.trimEnd();
  const odd = /\n|\bat .*:\d+:\d+|bug|undefined|\[object|Too small|Invalid input/;
  const isPlain = terminalText(line) === line && !odd.test(line);
  expect({ argv, exitCode, stdout, line, isPlain }).toEqual({
    ...{ argv, exitCode: 2, stdout: "", isPlain: true },
    line: expect.stringContaining(named),
  });
}

/** Nobody's value: neither number, address, path, name of a variable nor one of a list. */
const NONSENSE = ["", " ", "\x1b[31m=nö\n", "/no/such/thing", "../..", "-", "1e999"];
const NO_NUMBERS = [
  "-1",
  "NaN",
  "1.5.2",
  "0x10",
  "1e3",
  "９",
  "1,000",
  "10k",
  "99999999999999999999",
];

/** Any text can be meant by these; a service says whether it is. */
const ANY: Record<string, string[]> = {
  run: ["model", "data-source", "api-key-env"],
  jobs: ["label", "kind", "state"],
  backends: ["model", "model-dir", "api-key-env"],
  images: ["name", "image-cache", "config", "apptainer"],
  simulate: ["model", "model-dir", "port-file"],
};

const NUMBERS = [
  ...["samples", "group-size", "informative", "seed", "temperature", "top-p", "max-tokens"],
  ...["max-turns", "run-limit-ms", "limit", "show", "after", "to", "image-cache-bytes", "port"],
  ...["max-model-len", "jitter-ms", "speed", "prefill-tokens-per-s", "ms-per-token", "max-batch"],
  ...["ms-per-10k-context", "kv-tokens", "timeout"],
  ...["max-init-workers", "max-run-workers", "max-eval-workers"],
];

describe("a flag with a value that can't be", () => {
  const at = (folder: string) => {
    const rows = `${folder}/rows.jsonl`;
    writeFileSync(rows, '{"data_source": "echo"}\n');
    const server = ["--server", `${folder}/nobody.sock`];
    const own = ["--data-dir", `${folder}/data`, "--port", "0", "--driver", "none"];
    return { rows, server, own };
  };
  const isIn = (flag: string, names: readonly string[] = []) => names.includes(flag);

  test.each(Object.entries(RUN_FLAGS))("of run: --%s", async (flag, { type }) => {
    using dir = tempDir();
    const { rows, server } = at(dir.path);
    const own = ["backend", "model-dir", "engine", "apptainer", "config", "api-key-env", "model"];
    const where =
      isIn(flag, own) && flag !== "backend" ? ["--backend", "http://127.0.0.1:1/v1"] : server;
    const base = ["run", rows, ...(isIn(flag, ["server", "backend"]) ? [] : where)];
    const with_ =
      flag === "group-size"
        ? ["--informative", "1"]
        : flag === "informative"
          ? ["--group-size", "2"]
          : [];
    if (type === "boolean") return await expectRefusal([...base, `--${flag}=maybe`], `--${flag}`);
    await expectRefusal([...base, `--${flag}`], `--${flag} needs a value`);
    const path = isIn(flag, ["out", "resume"])
      ? ["/proc/no/file", "/", `${dir.path}/rows.jsonl`, "/dev/full", ""]
      : null;
    for (const value of path ?? [...NONSENSE, ...(isIn(flag, NUMBERS) ? NO_NUMBERS : [])]) {
      if (
        isIn(flag, ANY.run) ||
        (/^(temperature|top-p|max-.*|run-limit-ms)$/.test(flag) && /^1e3$|0x10/.test(value))
      )
        continue;
      if (flag === "server" && /^\/|^\.\.|^-$|^1e|^ $|nö/.test(value)) continue;
      if (flag === "image" && /^\/|^\.\.|^1e/.test(value)) continue;
      if (flag === "id-prefix" && value === "1e999") continue;
      await expectRefusal([...base, ...with_, `--${flag}=${value}`], `--${flag}`);
    }
    expect(readdirSync(dir.path)).toEqual(["rows.jsonl"]);
  });

  const actions = [
    ["jobs", JOBS_FLAGS, JOBS_USES],
    ["backends", BACKENDS_FLAGS, BACKENDS_USES],
    ["images", IMAGES_FLAGS, IMAGES_USES],
  ] as const;
  for (const [command, flags, { common, actions: uses }] of actions) {
    const places = Object.entries(uses) as [string, readonly string[]][];
    test.each(Object.entries(flags))(`of ${command}: --%s`, async (flag, { type }) => {
      using dir = tempDir();
      const server = command === "images" ? ["--image-cache", dir.file("c")] : at(dir.path).server;
      const argument: Record<string, string[]> = {
        get: ["x"],
        cancel: [],
        rescore: ["x"],
        add: [command === "images" ? "/x.sif" : "http://e/v1"],
        drain: ["x"],
        remove: ["x"],
      };
      for (const [action, own] of places) {
        const base = [command, action, ...(argument[action] ?? [])];
        const value = type === "boolean" ? [] : ["1"];
        if (!isIn(flag, [...common, ...own])) {
          await expectRefusal(
            [...base, ...server, `--${flag}`, ...value],
            `--${flag} does nothing for ${action}`,
          );
        } else if (isIn(flag, NUMBERS)) {
          const isSetting = flag === "image-cache-bytes";
          for (const bad of [...NONSENSE, ...NO_NUMBERS]) {
            if (isSetting && SETTINGS.image_cache_bytes.schema.safeParse(bad).success) continue;
            await expectRefusal([...base, ...server, `--${flag}=${bad}`], `--${flag}`);
          }
        } else if (type === "boolean") {
          await expectRefusal([...base, `--${flag}=maybe`], `--${flag}`);
        } else if (flag === "server" || flag === "engine") {
          for (const bad of ["", "http://", "localhost:80", "ftp://x"]) {
            await expectRefusal([...base, `--${flag}=${bad}`], `--${flag}`);
          }
        } else {
          expect([flag, isIn(flag, ANY[command])]).toEqual([flag, true]);
        }
      }
    });
  }

  test.each(Object.entries(SIMULATE_OPTIONS))("of simulate: --%s", async (flag, { type }) => {
    const base =
      flag === "policy" || flag === "echo" ? ["simulate"] : ["simulate", "--policy", "random"];
    if (type === "boolean") return await expectRefusal([...base, `--${flag}=maybe`], `--${flag}`);
    if (isIn(flag, ANY.simulate)) return await expectRefusal([...base, `--${flag}`], `--${flag}`);
    for (const value of [...NONSENSE, ...NO_NUMBERS]) {
      if (!isIn(flag, NUMBERS) && NO_NUMBERS.includes(value)) continue;
      if (/^(seed|jitter-ms|.*-per-.*)$/.test(flag) && /^-1$|^9{20}$/.test(value)) continue;
      await expectRefusal(
        [...base, `--${flag}=${value}`],
        flag === "fault" ? "fault" : `--${flag}`,
      );
    }
  });

  test.each(Object.entries(PRORL_FLAGS))("of prorl: --%s", async (flag, { type }) => {
    if (type === "boolean") return await expectRefusal(["prorl", `--${flag}=maybe`], `--${flag}`);
    for (const value of [...NONSENSE, ...(isIn(flag, NUMBERS) ? NO_NUMBERS : [])]) {
      if (flag === "reward-server-ip" && value === "1e999") continue;
      await expectRefusal(["prorl", `--${flag}=${value}`], `--${flag}`);
    }
  });

  test.each(Object.keys(SETTINGS) as SettingName[])("of serve and doctor: %s", async (name) => {
    using dir = tempDir();
    const { own } = at(dir.path);
    const { schema, fallback } = SETTINGS[name];
    const flag = flagOf(name);
    const isNumber = schema.safeParse("7").success && !schema.safeParse("seven").success;
    for (const command of ["serve", "doctor"]) {
      const base = [command, ...own];
      if (typeof fallback === "boolean") {
        await expectRefusal([...base, `${flag}=maybe`], flag);
        continue;
      }
      await expectRefusal([...base, flag], `${flag} needs a value`);
      const values = isNumber ? [...NONSENSE, ...NO_NUMBERS] : NONSENSE;
      for (const value of values) {
        // What is a number otherwise written, or a text of any form, is for the service.
        if (schema.safeParse(value).success) continue;
        await expectRefusal([...base, `${flag}=${value}`], flag);
      }
      const isOutside = name in CHECKS || schema instanceof z.ZodURL;
      if (command === "serve" && isOutside && !["data_dir", "image_cache"].includes(name)) {
        await expectRefusal([...base, `${flag}=/no/such\x1b[31m thing`], flag);
      }
    }
  });
});

describe("flags of which one would be ignored", () => {
  const ROWS = "/rows.jsonl";
  const own = ["--backend", "http://127.0.0.1:1/v1"];
  const server = ["--server", "/no/socket"];
  const cases: [string[], string][] = [
    ...["backend", "model", "model-dir", "api-key-env", "engine", "apptainer", "config"].map(
      (flag): [string[], string] => [
        [...server, `--${flag}`, "x"],
        `--${flag} is for a service of run's own`,
      ],
    ),
    ...[
      "backend",
      "model",
      "model-dir",
      "api-key-env",
      "engine",
      "samples",
      "seed",
      "temperature",
    ].map((flag): [string[], string] => [
      ["--golden", `--${flag}`, "1"],
      `--${flag} has no effect with --golden`,
    ]),
    [["--golden", "--top-p", "1"], "--top-p has no effect with --golden"],
    [["--golden", "--max-tokens", "1"], "--max-tokens has no effect with --golden"],
    [["--golden", "--max-turns", "1"], "--max-turns has no effect with --golden"],
    [["--golden", "--informative", "1"], "--informative does not go with --golden"],
    [[...own, "--group-size", "4"], "--group-size goes with --informative"],
    [
      [...own, "--informative", "1", "--group-size", "4", "--samples", "4"],
      "--samples has no effect",
    ],
    [
      [...own, "--informative", "1", "--group-size", "4", "--resume", "x"],
      "--resume is for rollouts",
    ],
    [[...own, "--informative", "1", "--group-size", "4", "--show", "1"], "--show is for rollouts"],
    [[...own, "--json", "--show", "1"], "--show has no effect with --json"],
    [[...own, "--resume", "x", "--out", "y"], "--out does not go with --resume"],
    [[...own, "--resume", "x", "--force"], "--force does not go with --resume"],
  ];

  test.each(cases)("of run %p", async (flags, why) => {
    await expectRefusal(["run", ROWS, ...flags], why);
  });

  test.each([
    [["serve", "--bwrap", "/bin/true"], "--bwrap is for --driver bubblewrap"],
    [["serve", "--driver", "none", "--apptainer", "/x"], "--apptainer has no effect"],
    [
      ["serve", "--driver", "none", "--sandbox-processes", "9"],
      "--sandbox-processes has no effect",
    ],
    [["serve", "--driver", "host", "--min-isolation", "A"], "--min-isolation is not kept"],
    [["serve", "--engine", "vllm"], "--engine has no effect without --backend"],
    [["serve", "--judge-ms", "5"], "--judge-ms has no effect without --judge-url"],
    [["serve", "--search-ms", "5"], "--search-ms has no effect without --search-url"],
    [["serve", "--token-file", "/x", "--allow-anonymous"], "--allow-anonymous does not go with"],
    [["doctor", "--bwrap", "/bin/true"], "--bwrap is for --driver bubblewrap"],
    [["jobs", "cancel", "id", "--label", "a:b"], "--label cancels all"],
    [["jobs", "cancel", "id", "--state", "active"], "--state goes with --label"],
    [["jobs", "watch", "--json"], "--json needs an id"],
    [["images", "prune", "--all", "--to", "1"], "--to does not go with --all"],
    [["simulate", "--echo", "--turns", "3"], "--turns is for --policy random"],
    [["simulate", "--echo", "--policy", "random"], "give --policy FILE or --echo"],
  ])("of %p", async (argv, why) => {
    await expectRefusal(argv, why);
  });
});

test.each(COMMANDS.map(({ name }) => name))(
  "%s refuses a flag and an argument that it does not know",
  async (name) => {
    await expectRefusal([name, "--bogus-flag"], "there is no flag --bogus-flag");
    await expectRefusal([name, "a", "b", "c", "d"], name);
  },
);

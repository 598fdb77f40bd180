import { statfsSync } from "node:fs";
import { join } from "node:path";
import { type Config, flagOf, type SettingName } from "../config/settings.ts";
import type { ServiceError } from "../errors.ts";
import { probeBackend } from "../inference/probe.ts";
import { installAssets } from "../sandbox/assets.ts";
import { attachSandbox } from "../sandbox/attach.ts";
import { emptyImage } from "../sandbox/best-level.ts";
import { createDriver } from "../sandbox/driver.ts";
import { endSandbox } from "../sandbox/end.ts";
import { Images } from "../sandbox/images/images.ts";
import { askProgram } from "../sandbox/programs.ts";
import { whyNoSifMount } from "../sandbox/sif-mount.ts";
import { whyNoFuseMount, whyNoStage } from "../sandbox/stage.ts";
import { prepareFolder } from "../store/database.ts";
import { type Command, EXIT } from "./command.ts";
import { examineNode, type Tried, thisNode } from "./doctor-node.ts";
import type { Finding } from "./finding.ts";
import { parseFlags, refuseExtra, refuseIdle, UsageError } from "./flags.ts";
import { idleSettings } from "./idle-settings.ts";
import { CHECKS, look, requireDriver } from "./preflight.ts";
import { configFrom, settingFlags } from "./settings.ts";
import { formatTable } from "./table.ts";
import { workerSettings } from "./worker-settings.ts";

export const doctorCommand: Command = {
  name: "doctor",
  summary: "tell what this node can do and what is missing, with the mend for each",
  help: `Usage: rolloutd doctor [--json] [flags]

Checks the node as \`rolloutd serve\` with the same flags would use it, and starts one sandbox where an image
is given. Exit code 1 when something is missing.

  --config FILE  settings as TOML
  --json         one JSON object per finding

Every flag of \`rolloutd serve\` is taken too (\`rolloutd serve --help\` lists them), such as --image, --data-dir
and --driver.
`,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, {
      ...settingFlags(),
      json: { type: "boolean" },
    });
    refuseExtra(positionals, 0);
    const config = configFrom(values);
    refuseIdle(values, idleSettings(config));
    const findings = await examine(config);
    if (values.json) for (const finding of findings) console.log(JSON.stringify(finding));
    else process.stdout.write(report(findings));
    return findings.some(({ status }) => status === "missing") ? EXIT.failed : EXIT.done;
  },
};

async function examine(config: Config): Promise<Finding[]> {
  const findings = [
    dataFolder(config.data_dir),
    ...examineNode(thisNode(await tried(config)), config),
    await program(config),
    ...(await named(config)),
  ];
  const blocked = findings.some(({ status }) => status === "missing");
  if (!blocked && config.driver !== "none") findings.push(await oneSandbox(config));
  if (config.backend) findings.push(await backend(config, config.backend));
  return findings;
}

/** By the same programs as the drivers'. A data folder that can't be used is told by itself. */
async function tried(config: Config): Promise<Tried> {
  try {
    const { dataDir, apptainer } = workerSettings(config);
    const { stage } = installAssets(join(dataDir, "assets"));
    const whyNoMount = whyNoSifMount(apptainer) ?? (await whyNoFuseMount(stage, dataDir));
    return { whyNoStage: await whyNoStage(stage, dataDir), whyNoSifMount: whyNoMount };
  } catch (error) {
    return { whyNoStage: String(error), whyNoSifMount: String(error) };
  }
}

function dataFolder(dataDir: string): Finding {
  const check = "data folder";
  try {
    prepareFolder(dataDir);
    const { bavail, bsize } = statfsSync(dataDir);
    const gib = (bavail * bsize) / 1024 ** 3;
    const detail = `${dataDir}, ${gib.toFixed(1)} GiB free`;
    return gib >= 1 ? { check, status: "ok", detail } : { check, status: "note", detail };
  } catch (error) {
    return problem(check, error);
  }
}

async function program(config: Config): Promise<Finding> {
  const { driver } = config;
  if (driver === "none") {
    const detail = "none: rollouts that need a sandbox are refused";
    return {
      check: "driver",
      status: "note",
      detail,
      mend: "leave --driver none out to have them",
    };
  }
  const check = driver === "bubblewrap" ? "bubblewrap" : "Apptainer";
  const mend =
    check === "bubblewrap"
      ? "install bubblewrap 0.8 or newer, or name it with --bwrap"
      : "install Apptainer or Singularity CE, or name it with --apptainer; with bubblewrap alone: --driver bubblewrap";
  try {
    await requireDriver(config);
    const { apptainer, bwrap } = workerSettings(config);
    const named = { name: check === "bubblewrap" ? bwrap : apptainer, mend };
    const { path, output } = await askProgram(named, ["--version"]);
    return { check, status: "ok", detail: `${output.trim()} at ${path}` };
  } catch (error) {
    return { ...problem(check, error), mend };
  }
}

/** What settings name besides, and is not there. That a port is taken may be our own service's doing. */
async function named(config: Config): Promise<Finding[]> {
  const own: SettingName[] = ["host", "data_dir", "image_cache", "driver", "apptainer", "bwrap"];
  const findings: Finding[] = [];
  for (const name of Object.keys(CHECKS) as SettingName[]) {
    if (own.includes(name)) continue;
    try {
      await look(name, config, process.env);
    } catch (error) {
      findings.push(problem(flagOf(name), error));
    }
  }
  return findings;
}

/** The only proof that counts: start one, run a command in it, end it. */
async function oneSandbox(config: Config): Promise<Finding> {
  const check = "a sandbox";
  try {
    const settings = workerSettings(config);
    const driver = createDriver(config.driver, settings);
    const signal = AbortSignal.timeout(config.init_limit_ms);
    const { defaultImage } = settings;
    const images = new Images(settings.images);
    const lease = defaultImage === null ? null : await images.acquire(defaultImage, signal);
    using _lock = lease?.lock;
    const startMs = performance.now();
    const { writable, ...limits } = settings.sandbox;
    const image = lease?.path ?? (await emptyImage(config.data_dir));
    const spec = { id: `doctor.${process.pid}`, image, writable, limits };
    const handle = await driver.start(spec, signal);
    try {
      const startedMs = performance.now() - startMs;
      const isolation = handle.isolation ?? "none: driver=host is for tests only";
      const detail = `started in ${startedMs.toFixed(0)} ms, isolation ${isolation}`;
      if (config.image) {
        return { check, status: "ok", detail: `${detail}; ${await pythonOf(handle)}` };
      }
      const mend = "name an image with --image to try that one";
      return { check, status: "note", detail: `${detail}; without an image`, mend };
    } finally {
      await endSandbox(handle);
    }
  } catch (error) {
    return problem(check, error);
  }
}

async function pythonOf(handle: Parameters<typeof attachSandbox>[0]): Promise<string> {
  const sandbox = await attachSandbox(handle);
  try {
    const options = { timeoutMs: 30_000, maxOutputBytes: 1000 };
    const program = "import sys, IPython, numpy, sympy; print(sys.version.split()[0])";
    const { exitCode, stdout } = await sandbox.exec(["python3", "-c", program], options);
    if (exitCode === 0) return `Python ${stdout.trim()} with IPython, numpy and sympy`;
    return "its Python lacks IPython, numpy or sympy, which math rollouts need";
  } finally {
    await sandbox.detach();
  }
}

async function backend(config: Config, url: string): Promise<Finding> {
  const check = "inference server";
  try {
    const { model, api_key_env, engine } = config;
    const apiKey = api_key_env === undefined ? undefined : process.env[api_key_env];
    const named = { ...(model && { model }), ...(apiKey && { apiKey }) };
    const signal = AbortSignal.timeout(10_000);
    const options = { ...named, engine, timeoutMs: 10_000, signal };
    const { model: served, profile } = await probeBackend(url, options);
    const detail = `${url} serves ${served} (${profile.kind}, called by ${profile.rung})`;
    return { check, status: "ok", detail };
  } catch (error) {
    return problem(check, error);
  }
}

function problem(check: string, error: unknown): Finding {
  const { message, mend, code } = error as ServiceError;
  // Neither ours nor the operating system's: then it is a bug.
  if (code === undefined && !(error instanceof UsageError)) throw error;
  return { check, status: "missing", detail: message, ...(mend ? { mend } : {}) };
}

function report(findings: Finding[]): string {
  const rows = findings.map(({ status, check, detail }) => [status, check, detail]);
  const mends = findings.flatMap(({ check, status, mend }) =>
    mend && status !== "ok" ? [`  ${check}: ${mend}`] : [],
  );
  const table = formatTable(["", "check", "found"], rows);
  return mends.length === 0 ? table : `${table}\nWhat to do:\n${mends.join("\n")}\n`;
}

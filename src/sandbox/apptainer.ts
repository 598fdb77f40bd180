import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import { INSIDE } from "./environment.ts";
import { isRoot, supervisorArguments } from "./host.ts";
import type { Launcher } from "./launcher.ts";
import { askProgram, requireExecutable } from "./programs.ts";
import type { IsolationLevel, SandboxSpec } from "./sandbox.ts";
import { sifMount } from "./sif-mount.ts";
import { STAGE_FOLDER, stageArguments, whyNoStage } from "./stage.ts";
import type { Launch } from "./start.ts";
import { asUnavailable, type Mends } from "./unavailable.ts";

type Installation = { program: string; setuid: boolean };

const MENDS: Mends = [
  [
    /starter.*(permission denied|no such file|exec format)|while (getting|running) (the )?starter/i,
    "Install Apptainer anew: its own program for starting is unusable.",
  ],
  [/network namespace|CLONE_NEWNET/i, "Raise user.max_net_namespaces."],
  [
    /user namespace|CLONE_NEWUSER/i,
    "Raise user.max_user_namespaces; on Ubuntu also allow Apptainer in AppArmor.",
  ],
  [
    /could(n't| not) determine user|unknown userid/i,
    "Run the service as a user that /etc/passwd or the directory service knows.",
  ],
];

/** Nothing of the host that is not named on the command line. */
const CONFIGURATION = `allow setuid = no
mount sys = no
mount home = no
mount hostfs = no
mount dev = minimal
config passwd = no
config group = no
config resolv_conf = no
enable fusemount = no
systemd cgroups = no
`;

const PATHS = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" };

/** For Go's runtime in Apptainer's first process, which lives for 20 ms: to collect what it leaves costs 2 of them. */
const SHORT_LIVED = { GOGC: "off" };

type Options = {
  dataDir: string;
  apptainer: string;
  /** The path of the program that lays root file systems ready. */
  stage(): string;
};

/** Rootless Apptainer or Singularity, from an unpacked root file system or a SIF that it mounts. */
export class ApptainerLauncher implements Launcher {
  readonly #options: Options;
  #installation: Promise<Installation> | null = null;
  #stageable: Promise<boolean> | null = null;

  constructor(options: Options) {
    this.#options = options;
  }

  async launch(
    dir: string,
    spec: SandboxSpec,
    level: IsolationLevel,
    signal: AbortSignal,
  ): Promise<Launch> {
    this.#installation ??= probeApptainer(this.#options.apptainer);
    // A failed probe is repeated at the next start: the program may be installed by then.
    this.#installation.catch(() => (this.#installation = null));
    const installation = await abortable(this.#installation, signal);
    const staged = await abortable(this.#canStage(), signal);
    const mount = await abortable(sifMount(spec.image, this.#options.apptainer), signal);
    const boundBytes = isRoot() && !staged ? megabytes(spec) * 1024 ** 2 : 0;
    return {
      level,
      argv: [
        ...(staged ? stageArguments(this.#options.stage(), dir, spec, mount) : []),
        installation.program,
        "-q",
        ...this.#configuration(installation, spec, staged),
        "exec",
        // Also what root needs that has not all capabilities.
        "--userns",
        ...["--containall", "--no-home"],
        ...["--no-mount", staged ? "sys,dev,devpts,bind-paths" : "sys,bind-paths"],
        // Root's is finished by the supervisor, which drops the capabilities that it takes before anything else.
        ...[isRoot() ? "--keep-privs" : "--no-privs", "--no-eval", "--no-init"],
        ...(level === "A" ? ["--net", "--network", "none"] : []),
        ...["--hostname", "sbx", "--cwd", "/"],
        ...(staged ? onStage(dir) : ownLayer(dir, spec, this.#options.dataDir)),
        ...bind(join(dir, "ro"), INSIDE.assets, ",ro"),
        ...bind(join(dir, "io"), INSIDE.io),
        staged ? join(dir, STAGE_FOLDER, "root") : spec.image,
        join(INSIDE.assets, "supervisor"),
        ...supervisorArguments(spec.limits, INSIDE.home, level, boundBytes),
      ],
      // Apptainer obeys many variables and hands others on, so that it sees none of ours.
      env: { ...PATHS, ...SHORT_LIVED, HOME: join(dir, "home"), LANG: "C.UTF-8" },
    };
  }

  /** Not every kernel mounts an overlay for users. */
  async #canStage(): Promise<boolean> {
    this.#stageable ??= whyNoStage(this.#options.stage(), this.#options.dataDir).then(
      (why) => why === null,
    );
    return await this.#stageable;
  }

  /** Only the owner of an unprivileged installation may name a configuration. */
  #configuration({ setuid }: Installation, spec: SandboxSpec, staged: boolean): string[] {
    if (!setuid) return ["--config", writeConfiguration(this.#options.dataDir, spec)];
    if (staged || spec.writable === "overlay") return [];
    throw new ServiceError(
      "sandbox_unavailable",
      "a setuid Apptainer takes no size for the RAM layer",
      { mend: "Install Apptainer without setuid, or set sandbox_writable to overlay." },
    );
  }

  explain(error: unknown): unknown {
    return asUnavailable(error, MENDS);
  }
}

function onStage(dir: string): string[] {
  const stage = join(dir, STAGE_FOLDER);
  return ["--writable", "--workdir", stage, ...bind(join(stage, "dev"), "/dev")];
}

/** Apptainer's own layer over an image, in which no folder of the image can be removed or renamed. */
function ownLayer(dir: string, { writable }: SandboxSpec, dataDir: string): string[] {
  const layer = writable === "overlay" ? ["--overlay", join(dir, "overlay")] : ["--writable-tmpfs"];
  // In the RAM layer; without this it would be half of the node's memory.
  const hidden = join(dataDir, "assets", "no-hooks");
  mkdirSync(join(hidden, "env"), { recursive: true, mode: 0o700 });
  // Scripts of the image's, which Apptainer runs before the supervisor has confined itself; see `hooks` in `stage.c`.
  return [...layer, "--scratch", "/dev/shm", ...bind(hidden, "/.singularity.d", ",ro")];
}

function bind(from: string, to: string, options = ""): string[] {
  return ["--mount", `type=bind,"src=${from}",dst=${to}${options}`];
}

const APPTAINER_MEND = "Install Apptainer (scripts/setup makes a private one) or set `apptainer`.";

/**
 * Asks the program how it was built, and looks at the one that it starts sandboxes with.
 * @throws ServiceError `sandbox_unavailable`
 */
export async function probeApptainer(name: string): Promise<Installation> {
  const mend = APPTAINER_MEND;
  const { path, exitCode, output, errors } = await askProgram({ name, mend }, ["buildcfg"], {
    HOME: "/",
  });
  const built = (key: string) => new RegExp(`^${key}=(.*)`, "m").exec(output)?.[1];
  const setuid = built("(?:APPTAINER|SINGULARITY)_SUID_INSTALL");
  if (setuid === undefined) {
    const said = errors ? `: ${errors}` : "";
    const what = `${path} does not answer like Apptainer or Singularity, it ended with ${exitCode}${said}`;
    throw new ServiceError("sandbox_unavailable", what, { mend });
  }
  const helpers = ["apptainer", "singularity"].map((name) =>
    join(built("LIBEXECDIR") ?? "", name, "bin"),
  );
  const folder = helpers.find((path) => isAbsolute(path) && existsSync(path));
  if (folder !== undefined) {
    const anew = `Install ${path} anew: the program that it starts sandboxes with is unusable.`;
    requireExecutable(join(folder, "starter"), anew);
  }
  return { program: path, setuid: setuid !== "0" };
}

/** Below that Apptainer's own files don't fit. */
function megabytes({ limits }: SandboxSpec): number {
  return Math.max(16, Math.ceil(limits.tmpfsBytes / 1024 ** 2));
}

function writeConfiguration(dataDir: string, spec: SandboxSpec): string {
  const size = megabytes(spec);
  const path = join(dataDir, "assets", `apptainer-${size}.conf`);
  if (existsSync(path)) return path;
  mkdirSync(join(dataDir, "assets"), { recursive: true, mode: 0o700 });
  const fresh = `${path}.${crypto.randomUUID()}`;
  writeFileSync(fresh, `${CONFIGURATION}sessiondir max size = ${size}\n`, { mode: 0o600 });
  renameSync(fresh, path);
  return path;
}

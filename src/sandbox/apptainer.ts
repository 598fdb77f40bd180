import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import { INSIDE } from "./environment.ts";
import { isRoot, supervisorArguments } from "./host.ts";
import type { Launcher } from "./launcher.ts";
import type { IsolationLevel, SandboxSpec } from "./sandbox.ts";
import type { Launch } from "./start.ts";

type Installation = { program: string; setuid: boolean };

const PROBE_MS = 20_000;

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

/** Rootless Apptainer or Singularity, from an unpacked root file system. */
export class ApptainerLauncher implements Launcher {
  readonly #options: { dataDir: string; apptainer: string };
  #installation: Promise<Installation> | null = null;

  constructor(options: { dataDir: string; apptainer: string }) {
    this.#options = options;
  }

  async launch(
    dir: string,
    spec: SandboxSpec,
    level: IsolationLevel,
    signal: AbortSignal,
  ): Promise<Launch> {
    this.#installation ??= probe(this.#options.apptainer);
    // A failed probe is repeated at the next start: the program may be installed by then.
    this.#installation.catch(() => (this.#installation = null));
    const installation = await abortable(this.#installation, signal);
    return {
      level,
      argv: [
        installation.program,
        "-q",
        ...this.#configuration(installation, spec),
        "exec",
        // Also what root needs that has not all capabilities.
        "--userns",
        ...["--containall", "--no-home", "--no-mount", "sys,bind-paths"],
        // Root's is finished by the supervisor, which drops the capabilities that it takes before anything else.
        ...[isRoot() ? "--keep-privs" : "--no-privs", "--no-eval", "--no-init"],
        ...(level === "A" ? ["--net", "--network", "none"] : []),
        ...["--hostname", "sbx", "--cwd", "/"],
        ...(spec.writable === "overlay"
          ? ["--overlay", join(dir, "overlay")]
          : ["--writable-tmpfs"]),
        ...bind(join(dir, "ro"), INSIDE.assets, ",ro"),
        ...bind(join(dir, "io"), INSIDE.io),
        // In the RAM layer; without this it would be half of the node's memory.
        ...["--scratch", "/dev/shm"],
        spec.image,
        join(INSIDE.assets, "supervisor"),
        ...supervisorArguments(
          spec.limits,
          INSIDE.home,
          level,
          isRoot() ? megabytes(spec) * 1024 ** 2 : 0,
        ),
      ],
      // Apptainer obeys many variables and hands others on, so that it sees none of ours.
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", HOME: join(dir, "home"), LANG: "C.UTF-8" },
    };
  }

  /** Only the owner of an unprivileged installation may name a configuration. */
  #configuration({ setuid }: Installation, spec: SandboxSpec): string[] {
    if (!setuid) return ["--config", writeConfiguration(this.#options.dataDir, spec)];
    if (spec.writable === "overlay") return [];
    throw new ServiceError(
      "sandbox_unavailable",
      "a setuid Apptainer takes no size for the RAM layer",
      { mend: "Install Apptainer without setuid, or set sandbox_writable to overlay." },
    );
  }

  explain(error: unknown): unknown {
    if (!(error instanceof ServiceError) || error.code !== "sandbox_start_failed") return error;
    const mends: [RegExp, string][] = [
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
    const mend = mends.find(([words]) => words.test(error.message))?.[1];
    if (mend === undefined) return error;
    return new ServiceError("sandbox_unavailable", error.message, { mend, cause: error });
  }
}

function bind(from: string, to: string, options = ""): string[] {
  return ["--mount", `type=bind,"src=${from}",dst=${to}${options}`];
}

/** Asks the program how it was built. */
async function probe(name: string): Promise<Installation> {
  const program = Bun.which(name);
  const mend = "Install Apptainer (scripts/setup makes a private one) or set `apptainer`.";
  if (program === null) {
    throw new ServiceError("sandbox_unavailable", `there is no program ${name}`, { mend });
  }
  const asked = Bun.spawn([program, "buildcfg"], {
    env: { PATH: "/usr/bin:/bin", HOME: "/" },
    stdio: ["ignore", "pipe", "ignore"],
    timeout: PROBE_MS,
    killSignal: "SIGKILL",
  });
  const [text] = await Promise.all([asked.stdout.text(), asked.exited]);
  const setuid = text.match(/^(?:APPTAINER|SINGULARITY)_SUID_INSTALL=(\d)/m)?.[1];
  if (setuid === undefined) {
    const what = `${program} does not answer like Apptainer or Singularity`;
    throw new ServiceError("sandbox_unavailable", what, { mend });
  }
  return { program, setuid: setuid !== "0" };
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

import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import { INSIDE } from "./environment.ts";
import { isRoot, supervisorArguments } from "./host.ts";
import type { Launcher } from "./launcher.ts";
import { askProgram } from "./programs.ts";
import type { IsolationLevel, SandboxSpec } from "./sandbox.ts";
import { sifMount } from "./sif-mount.ts";
import { STAGE_FOLDER, stageArguments } from "./stage.ts";
import type { Launch } from "./start.ts";
import { asUnavailable, type Mends } from "./unavailable.ts";

const MENDS: Mends = [
  [
    /namespace|uid map|No permissions/i,
    "Raise user.max_user_namespaces; on Ubuntu also allow bubblewrap in AppArmor.",
  ],
];
/** For the supervisor's first act, which then drops them: see `seal_settings`. */
const SUPERVISOR_CAPABILITIES = ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"];

type Options = {
  bwrap: string;
  /** What mounts a SIF is looked for beside it. */
  apptainer: string;
  /** The path of the program that lays root file systems ready. */
  stage(): string;
};

/** bubblewrap, with the root file system that `stage.c` lays ready. */
export class BubblewrapLauncher implements Launcher {
  readonly #options: Options;
  #program: Promise<string> | null = null;

  constructor(options: Options) {
    this.#options = options;
  }

  async launch(
    dir: string,
    spec: SandboxSpec,
    level: IsolationLevel,
    signal: AbortSignal,
  ): Promise<Launch> {
    this.#program ??= probeBubblewrap(this.#options.bwrap);
    // A failed probe is repeated at the next start: the program may be installed by then.
    this.#program.catch(() => (this.#program = null));
    const program = await abortable(this.#program, signal);
    const mount = await abortable(sifMount(spec.image, this.#options.apptainer), signal);
    return {
      level,
      argv: [
        ...stageArguments(this.#options.stage(), dir, spec, mount),
        program,
        ...namespaces(level),
        ...mounts(dir),
        "--",
        join(INSIDE.assets, "supervisor"),
        ...supervisorArguments(spec.limits, INSIDE.home, level),
      ],
      env: { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
    };
  }

  explain(error: unknown): unknown {
    return asUnavailable(error, MENDS);
  }
}

/** No `--die-with-parent`: the parent is the thread that starts, and sandboxes outlive threads. */
function namespaces(level: IsolationLevel): string[] {
  return [
    ...["--unshare-user", "--unshare-all", ...(level === "A" ? [] : ["--share-net"])],
    ...["--as-pid-1", "--hostname", "sbx", "--clearenv"],
    // With `--disable-userns` not even PID 1 could have a right to the mounts. The filter that PID 1 installs
    // refuses new user namespaces to both.
    ...(isRoot() ? SUPERVISOR_CAPABILITIES : ["--disable-userns", "--cap-drop", "ALL"]),
  ];
}

function mounts(dir: string): string[] {
  const staged = (name: string) => join(dir, STAGE_FOLDER, name);
  return [
    ...["--bind", staged("root"), "/"],
    ...["--dev-bind", staged("dev"), "/dev", "--proc", "/proc"],
    ...["--bind", staged("tmp"), "/tmp", "--bind", staged("var_tmp"), "/var/tmp"],
    ...["--bind", join(dir, "io"), INSIDE.io, "--ro-bind", join(dir, "ro"), INSIDE.assets],
    ...["--chdir", "/"],
  ];
}

const BUBBLEWRAP_MEND =
  "Install bubblewrap 0.8 or newer (scripts/setup makes a private one) or set `bwrap`.";

/** Its path, once it has told what it can do. @throws ServiceError `sandbox_unavailable` */
export async function probeBubblewrap(name: string): Promise<string> {
  const mend = BUBBLEWRAP_MEND;
  const { path, exitCode, output, errors } = await askProgram({ name, mend }, ["--help"]);
  const lacks = ["--disable-userns", "--as-pid-1"].filter((option) => !output.includes(option));
  if (lacks.length === 0) return path;
  const said = exitCode === 0 ? "" : `, it ended with ${exitCode}${errors && `: ${errors}`}`;
  const what = `${path} has no ${lacks.join(", ")}${said}`;
  throw new ServiceError("sandbox_unavailable", what, { mend });
}

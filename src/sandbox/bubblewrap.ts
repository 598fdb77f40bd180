import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import { INSIDE } from "./environment.ts";
import { isRoot, supervisorArguments } from "./host.ts";
import type { Launcher } from "./launcher.ts";
import type { IsolationLevel, SandboxSpec } from "./sandbox.ts";
import type { Launch } from "./start.ts";

const PROBE_MS = 20_000;
/** For the supervisor's first act, which then drops them: see `seal_all`. */
const SUPERVISOR_CAPABILITIES = ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"];
/** They lie in a layer below the image: in one that belongs to somebody else we could not make them. */
const MOUNT_POINTS = ["/dev", "/proc", "/tmp", "/var/tmp", INSIDE.io, INSIDE.assets];
/**
 * bubblewrap, from an unpacked root file system.
 *
 * It runs twice. bubblewrap can't bound an overlay in RAM, and takes an overlay's folders from the namespace
 * that it is started in: so the outer one makes a file system of the right size, and the inner one the sandbox
 * with its layers there. This also gives them names of which a payload learns nothing.
 */
export class BubblewrapLauncher implements Launcher {
  readonly #name: string;
  #program: Promise<string> | null = null;

  constructor(options: { bwrap: string }) {
    this.#name = options.bwrap;
  }

  async launch(
    dir: string,
    spec: SandboxSpec,
    level: IsolationLevel,
    signal: AbortSignal,
  ): Promise<Launch> {
    this.#program ??= probe(this.#name);
    // A failed probe is repeated at the next start: the program may be installed by then.
    this.#program.catch(() => (this.#program = null));
    const program = await abortable(this.#program, signal);
    // It covers a folder that every host has and that the inner bubblewrap does not need.
    const stage = program.startsWith("/tmp/") ? "/mnt" : "/tmp";
    return {
      level,
      argv: [
        program,
        ...outer(dir, spec, stage),
        "--",
        program,
        ...inner(level, stage),
        "--",
        join(INSIDE.assets, "supervisor"),
        ...supervisorArguments(spec.limits, INSIDE.home, level),
      ],
      env: { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
    };
  }

  explain(error: unknown): unknown {
    if (!(error instanceof ServiceError) || error.code !== "sandbox_start_failed") return error;
    if (!/namespace|uid map|No permissions/i.test(error.message)) return error;
    const mend = "Raise user.max_user_namespaces; on Ubuntu also allow bubblewrap in AppArmor.";
    return new ServiceError("sandbox_unavailable", error.message, { mend, cause: error });
  }
}

/** No `--die-with-parent` here: the parent is the thread that starts, and sandboxes outlive threads. */
function outer(dir: string, spec: SandboxSpec, stage: string): string[] {
  const folder = (mode: string, name: string) => ["--perms", mode, "--dir", `${stage}/${name}`];
  const onDisk = spec.writable === "overlay";
  return [
    ...["--unshare-user", "--dev-bind", "/", "/"],
    ...["--size", `${spec.limits.tmpfsBytes}`, "--tmpfs", stage],
    ...(onDisk ? ["--bind", join(dir, "overlay"), `${stage}/layer`] : folder("0755", "layer")),
    ...[...folder("0755", "layer/upper"), ...folder("0755", "layer/work")],
    ...[...folder("1777", "tmp"), ...folder("1777", "var-tmp"), ...folder("1777", "shm")],
    ...MOUNT_POINTS.flatMap((path) => folder("0755", `skeleton${path}`)),
    ...["--ro-bind", spec.image, `${stage}/image`],
    ...["--ro-bind", join(dir, "ro"), `${stage}/ro`, "--bind", join(dir, "io"), `${stage}/io`],
    ...["--chdir", "/"],
  ];
}

function inner(level: IsolationLevel, stage: string): string[] {
  return [
    ...["--unshare-user", "--unshare-all", ...(level === "A" ? [] : ["--share-net"])],
    ...["--die-with-parent", "--as-pid-1", "--hostname", "sbx", "--clearenv"],
    // With `--disable-userns` not even PID 1 could have a right to the mounts. The filter that PID 1 installs
    // refuses new user namespaces to both.
    ...(isRoot() ? SUPERVISOR_CAPABILITIES : ["--disable-userns", "--cap-drop", "ALL"]),
    ...["--overlay-src", `${stage}/skeleton`, "--overlay-src", `${stage}/image`],
    ...["--overlay", `${stage}/layer/upper`, `${stage}/layer/work`, "/"],
    ...["--dev", "/dev", "--proc", "/proc", "--bind", `${stage}/shm`, "/dev/shm"],
    // What has to be written to is mounted in it; the rest would be a RAM disk without a bound.
    ...["--remount-ro", "/dev"],
    ...["--bind", `${stage}/tmp`, "/tmp", "--bind", `${stage}/var-tmp`, "/var/tmp"],
    ...["--bind", `${stage}/io`, INSIDE.io, "--ro-bind", `${stage}/ro`, INSIDE.assets],
    ...["--chdir", "/"],
  ];
}

async function probe(name: string): Promise<string> {
  const program = Bun.which(name);
  const mend =
    "Install bubblewrap 0.11 or newer (scripts/setup makes a private one) or set `bwrap`.";
  if (program === null) {
    throw new ServiceError("sandbox_unavailable", `there is no program ${name}`, { mend });
  }
  const asked = Bun.spawn([program, "--help"], {
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["ignore", "pipe", "ignore"],
    timeout: PROBE_MS,
    killSignal: "SIGKILL",
  });
  const [text] = await Promise.all([asked.stdout.text(), asked.exited]);
  const lacks = ["--overlay-src", "--disable-userns", "--as-pid-1"].filter(
    (option) => !text.includes(option),
  );
  if (lacks.length === 0) return program;
  const what = `${program} has no ${lacks.join(", ")}`;
  throw new ServiceError("sandbox_unavailable", what, { mend });
}

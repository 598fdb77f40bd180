/**
 * A running sandbox as plain data. It belongs to a job, not to the thread that made it: any thread of
 * the service can `attach` to it, and the job row keeps it so that a successor can clean up.
 */
export type SandboxHandle = {
  id: string;
  driver: DriverName;
  /** Absolute path of the sandbox's private directory on the host. */
  dir: string;
  /** Our end of the supervisor's socket. Its close (also by `kill -9` of us) ends the sandbox. */
  controlFd: number;
  /** The supervisor (PID 1 inside) as the host sees it, and its start time in clock ticks. */
  holderPid: number;
  holderStartTime: string;
  /** The process that we spawned; also the session id of everything it started. */
  starterPid: number;
};

export type DriverName = "apptainer" | "host";

export type SandboxSpec = {
  /** Unique per job attempt; names the directory. */
  id: string;
  /** Absolute path of an unpacked root file system. */
  image: string;
  /** The writable layer: RAM of a bounded size, or a directory of ours on local disk. */
  writable: "tmpfs" | "overlay";
  limits: SandboxLimits;
};

export type SandboxLimits = {
  startTimeoutMs: number;
  processes: number;
  openFiles: number;
  fileBytes: number;
  /** Bound of the tmpfs layer, shared by `/`, `/tmp` and the home directory. */
  tmpfsBytes: number;
};

export interface SandboxDriver {
  readonly name: DriverName;
  /** @throws ServiceError `sandbox_start_failed`, `sandbox_unavailable`, `image_*`, or the abort reason. */
  start(spec: SandboxSpec, signal: AbortSignal): Promise<SandboxHandle>;
}

export type ExecOptions = {
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string | Uint8Array;
  timeoutMs: number;
  /** Of each stream; head and tail are kept and the cut is stated. */
  maxOutputBytes: number;
  signal?: AbortSignal;
};

export type ExecResult = {
  stdout: string;
  stderr: string;
  /** Null when the command was ended by a signal or the time limit. */
  exitCode: number | null;
  signal: number | null;
  timedOut: boolean;
};

export type CommandResult = {
  output: string;
  /** Null while the command still runs, that is after a timeout. */
  exitCode: number | null;
  cwd: string;
  timedOut: boolean;
  /** The shell ended (`exit`, `exec`, `kill -9 -1`) and a fresh one took its place: state is lost. */
  shellReplaced: boolean;
  /** Bytes cut from the middle of the output. */
  cutBytes: number;
  durationMs: number;
};

/** A persistent bash on a PTY: cwd, variables, functions and background jobs survive between commands. */
export interface Shell {
  run(command: string, options: RunOptions): Promise<CommandResult>;
  close(): Promise<void>;
}

export type RunOptions = { timeoutMs: number; maxOutputBytes: number; signal?: AbortSignal };

export type CellResult = {
  /** What a notebook would show: stdout, stderr, the value of the last expression, the traceback. */
  output: string;
  ok: boolean;
  timedOut: boolean;
  /** The interpreter had to be restarted: its variables are lost. */
  restarted: boolean;
  cutBytes: number;
  durationMs: number;
};

/** An IPython session in the sandbox. It outlives the thread that started it. */
export interface Python {
  run(code: string, options: RunOptions): Promise<CellResult>;
  close(): Promise<void>;
}

export interface Sandbox {
  readonly handle: SandboxHandle;
  /** Aborted with a `sandbox_died` error when the sandbox ends without `end()`. */
  readonly died: AbortSignal;
  exec(argv: string[], options: ExecOptions): Promise<ExecResult>;
  shell(): Promise<Shell>;
  python(options: { startTimeoutMs: number }): Promise<Python>;
  /** Paths are resolved inside the sandbox, by the sandbox: links can't lead out of it. */
  readFile(path: string, maxBytes: number): Promise<Uint8Array>;
  writeFile(path: string, data: string | Uint8Array, mode?: number): Promise<void>;
  /** Lets go without ending: another thread may attach. */
  detach(): void;
}

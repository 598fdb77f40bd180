import type { TreeLimits, TreePart, TreeSource, TreeTotals } from "./tree.ts";
import type { WorkTimes } from "./work-meter.ts";

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
  /** What that descriptor is (`socket:[4711]`): its number is given again after its close. */
  controlSocket: string;
  /** The supervisor (PID 1 inside) as the host sees it, and its start time in clock ticks. */
  holderPid: number;
  holderStartTime: string;
  /** The process that we spawned; also the session id of everything it started. */
  starterPid: number;
  starterStartTime: string;
  /** As measured when it started. Null: the host driver, which isolates nothing. */
  isolation: IsolationLevel | null;
  /** Its cgroup's folder, where the node delegates one. */
  cgroup?: string;
  /** Commands of the model's have run in it: what it lacks now is no fault of its image. */
  used?: true;
  /** Keeps its image in the cache until the sandbox is ended; absent where that is not in the cache. */
  imageLock?: ImageLock;
};

/** A descriptor of this process, and what it is: its number is given again after its close. */
export type ImageLock = { fd: number; file: string };

export type DriverName = "apptainer" | "bubblewrap" | "host";

/**
 * A: user, PID, IPC, UTS, mount and network namespaces of its own, a system call filter, no capabilities.
 * B: A without the network namespace; the filter refuses IP sockets instead. Anything less is refused.
 */
export type IsolationLevel = "A" | "B";

export type SandboxSpec = {
  /** Of the job's attempt: part of the directory's name, for people to read. */
  id: string;
  /** Absolute path of an unpacked root file system, or of a SIF to be mounted. */
  image: string;
  /** The writable layer: RAM of a bounded size, or a directory of ours on local disk. */
  writable: "tmpfs" | "overlay";
  limits: SandboxLimits;
};

export type SandboxLimits = WatchLimits & {
  startTimeoutMs: number;
  openFiles: number;
  fileBytes: number;
  /** Bound of the RAM, shared by `/`, `/tmp`, `/dev/shm` and the home directory. */
  tmpfsBytes: number;
};

/** What ends a sandbox that goes beyond it. */
export type WatchLimits = {
  /** Threads count. */
  processes: number;
  /** In RAM, of all its processes together; files in the RAM layer come on top. */
  memoryBytes: number;
  /** On the host's disk. */
  diskBytes: number;
};

export interface SandboxDriver {
  readonly name: DriverName;
  /**
   * Leaves nothing behind when it fails.
   * @throws ServiceError `sandbox_start_failed`, `sandbox_unavailable`, `image_*`, or the abort reason.
   */
  start(spec: SandboxSpec, signal: AbortSignal): Promise<SandboxHandle>;
}

/** Units: milliseconds. */
export type WorkLimits = {
  /** Of the processor, all processes together. */
  cpuMs: number;
  /** Of wall time less what the node kept the work waiting for a processor or a disk. */
  workMs: number;
  /** After so long the node is too busy for a verdict, unless the work had its part by then. */
  wallMs: number;
};

/** Who ended submitted work: it did so itself, or it had its limit. */
export type WorkEnd = "itself" | "cpu" | "hung";

export type AloneOptions = WorkLimits & {
  /** Of each process. */
  addressBytes: number;
  cwd?: string;
  stdin: string | Uint8Array;
  maxOutputBytes: number;
  signal?: AbortSignal;
};

export type AloneResult = Pick<ExecResult, "stdout" | "stderr" | "exitCode" | "signal"> & {
  end: WorkEnd;
  times: WorkTimes;
  /** It has left no file, no name and no shared memory: the next command finds the sandbox as it did. */
  clean: boolean;
};

export type ExecOptions = {
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string | Uint8Array;
  timeoutMs: number;
  /**
   * For submitted work: then what the node kept it waiting does not count for `timeoutMs`, and if it had less than that
   * after so long the node is too busy (`node_exhausted`).
   */
  patienceMs?: number;
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
  /** Where `patienceMs` is given. */
  times?: WorkTimes;
};

export type LoggedRunOptions = {
  /** Path, from the home folder as for `readFile`, of the file in the sandbox that gets both streams, whole, in the order in which they were written. */
  log: string;
  cwd?: string;
  env?: Record<string, string>;
  timeoutMs: number;
  /** As for `exec`. */
  patienceMs?: number;
  signal?: AbortSignal;
};

export type LoggedRun = Pick<ExecResult, "exitCode" | "signal" | "timedOut" | "times"> & {
  durationMs: number;
};

export type CommandResult = {
  output: string;
  /** Null where it was stopped, and while it runs. Of a shell that was killed by signal n: 128 + n. */
  exitCode: number | null;
  /** Of a command that runs on: where the shell was before it. */
  cwd: string;
  /** What `python` is on the shell's PATH; empty where it has none. */
  python: string;
  timedOut: boolean;
  /** The command runs on: `resume` reads more of it and types into it. */
  running: boolean;
  /** The shell ended (`exit`, `exec`, `kill -9 -1`) and a fresh one took its place: state is lost. */
  shellReplaced: boolean;
  /** Bytes cut from the middle of the output. */
  cutBytes: number;
  durationMs: number;
};

/** A persistent bash on a PTY: cwd, variables, functions and background jobs survive between commands. */
export interface Shell {
  /** Of a command that was left running; `ended` until `resume` or the next `run` has told of its end. */
  readonly left: "running" | "ended" | null;
  /** Not while a command runs. */
  run(command: string, options: CommandOptions): Promise<CommandResult>;
  /** Types `input` into the command that was left running, and waits for it again. */
  resume(input: string, options: CommandOptions): Promise<CommandResult>;
  close(): Promise<void>;
}

export type RunOptions = { timeoutMs: number; maxOutputBytes: number; signal?: AbortSignal };

export type CommandOptions = RunOptions & {
  /** What becomes of a command whose time is over; it is stopped unless it shall be left. */
  late?: "stop" | "leave";
  /** With `leave`: answer already when nothing was printed for as long. */
  quietMs?: number;
};

export type CellResult = {
  /** What a notebook would show: stdout, stderr, the value of the last expression, the traceback. */
  output: string;
  ok: boolean;
  /** What was displayed as PNG, as data URLs: the first few, none of them large. */
  images: string[];
  cwd: string;
  /** Absolute path of the interpreter; empty before it has answered for the first time. */
  python: string;
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
  /**
   * Its process group ends with it; only a session of its own outlives it.
   * @throws ServiceError `image_invalid` if the program is not there, `sandbox_died`, the abort reason.
   */
  exec(argv: string[], options: ExecOptions): Promise<ExecResult>;
  /**
   * `exec` for output that has to be read whole, such as a test log: `readFile` reads it afterwards. A text is a
   * bash script of any length, which the sandbox can read and not change.
   */
  run(command: string[] | string, options: LoggedRunOptions): Promise<LoggedRun>;
  /**
   * Runs submitted work with nothing of anybody else's beside it, which would end with it: all processes but PID 1 end
   * when it does. Its limits are set by PID 1 and by us, and by no program of the sandbox's.
   * @throws ServiceError as `exec`, and `node_exhausted` where the node was too busy for it
   */
  runAlone(argv: string[], options: AloneOptions): Promise<AloneResult>;
  /** One of any number. @throws ServiceError `image_invalid` without bash. */
  shell(signal?: AbortSignal): Promise<Shell>;
  /** The sandbox's one session, started at the first call of any thread. */
  python(options: { startTimeoutMs: number; signal?: AbortSignal }): Promise<Python>;
  /** Puts a text where the sandbox can read it and never change it; returns its path inside. One name, one text. */
  give(name: string, text: string): string;
  /**
   * Regular files only. Paths are resolved inside the sandbox, by the sandbox: links can't lead out.
   * @throws FileError, with `EFBIG` for a file above `maxBytes`.
   */
  readFile(path: string, maxBytes: number, signal?: AbortSignal): Promise<Uint8Array>;
  /** Makes missing folders. @throws FileError */
  writeFile(
    path: string,
    data: string | Uint8Array,
    mode?: number,
    signal?: AbortSignal,
  ): Promise<void>;
  /**
   * All below a folder, links as links, never through one. As it is read, so that a tree of any size takes no memory;
   * who stops taking parts stops the reading. What a payload changes meanwhile is read as it was at some moment.
   * @throws FileError, with `EFBIG` beyond the limits.
   */
  readTree(path: string, limits: TreeLimits, signal?: AbortSignal): AsyncIterable<TreePart>;
  /**
   * Below a folder, which is made where it is missing, and never through a link below it. What is in the way is
   * replaced, except a folder by a file. `left` in the answer is what the source had and could not be carried.
   * @throws FileError, with `EFBIG` beyond the limits; what was written by then stays.
   */
  writeTree(
    path: string,
    source: TreeSource,
    limits: TreeLimits,
    signal?: AbortSignal,
  ): Promise<TreeTotals>;
  /**
   * `readTree` into a folder of the host's, which must not be there yet. Only files (of mode 600 or 700) and
   * folders: links are `left`, like devices. @throws FileError; then there is no folder.
   */
  saveTree(
    path: string,
    hostFolder: string,
    limits: TreeLimits,
    signal?: AbortSignal,
  ): Promise<TreeTotals>;
  /**
   * Lets go without ending, shells closed, Python left running: when it resolves another thread may
   * attach. Does not fail; of a sandbox that has died there is nothing to let go.
   */
  detach(): Promise<void>;
}

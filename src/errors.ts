/** Who has to act for a failure to go away. `client` means the request itself was wrong. */
export type Boundary = "client" | "policy" | "task" | "sandbox" | "engine" | "verifier" | "service";

type ErrorRow = { status: number; boundary: Boundary; retryable: boolean };

/** Every error that leaves the service, by its stable code. `retryable`: the same job may succeed. */
export const ERRORS = {
  bad_json: { status: 400, boundary: "client", retryable: false },
  invalid_field: { status: 400, boundary: "client", retryable: false },
  unknown_field: { status: 400, boundary: "client", retryable: false },
  model_folder_invalid: { status: 400, boundary: "client", retryable: false },
  unknown_task_kind: { status: 400, boundary: "client", retryable: false },
  unauthorized: { status: 401, boundary: "client", retryable: false },
  foreign_origin: { status: 403, boundary: "client", retryable: false },
  address_forbidden: { status: 400, boundary: "client", retryable: false },
  not_found: { status: 404, boundary: "client", retryable: false },
  method_not_allowed: { status: 405, boundary: "client", retryable: false },
  not_acceptable: { status: 406, boundary: "client", retryable: false },
  body_too_large: { status: 413, boundary: "client", retryable: false },
  unsupported_body: { status: 415, boundary: "client", retryable: false },
  not_rescorable: { status: 409, boundary: "client", retryable: false },
  id_conflict: { status: 422, boundary: "client", retryable: false },
  too_many_waiting: { status: 429, boundary: "service", retryable: true },
  queue_full: { status: 429, boundary: "service", retryable: true },

  cancelled: { status: 200, boundary: "client", retryable: false },
  deadline_exceeded: { status: 200, boundary: "policy", retryable: false },

  // How groups and batches of rollouts end besides.
  not_needed: { status: 200, boundary: "client", retryable: false },
  source_unreachable: { status: 200, boundary: "service", retryable: true },
  batch_exhausted: { status: 200, boundary: "client", retryable: false },

  instance_invalid: { status: 200, boundary: "task", retryable: false },
  image_not_found: { status: 200, boundary: "sandbox", retryable: false },
  image_invalid: { status: 200, boundary: "sandbox", retryable: false },
  image_unreachable: { status: 200, boundary: "sandbox", retryable: true },
  image_busy: { status: 200, boundary: "sandbox", retryable: true },
  image_cache_unusable: { status: 200, boundary: "sandbox", retryable: false },
  sandbox_unavailable: { status: 200, boundary: "sandbox", retryable: false },
  sandbox_start_failed: { status: 200, boundary: "sandbox", retryable: true },
  sandbox_died: { status: 200, boundary: "sandbox", retryable: true },
  // What the job did itself, and would do again: no fault of the node, and no reward of 0 either.
  oom: { status: 200, boundary: "policy", retryable: false },
  pids_limit: { status: 200, boundary: "policy", retryable: false },
  disk_limit: { status: 200, boundary: "policy", retryable: false },
  sandbox_broken: { status: 200, boundary: "policy", retryable: false },
  // What the environment answers while a paused rollout is begun again is not what it answered before.
  replay_diverged: { status: 200, boundary: "sandbox", retryable: true },
  sandbox_protocol: { status: 200, boundary: "sandbox", retryable: true },

  engine_unreachable: { status: 502, boundary: "engine", retryable: true },
  engine_refused: { status: 502, boundary: "engine", retryable: false },
  engine_overloaded: { status: 502, boundary: "engine", retryable: true },
  engine_bad_reply: { status: 502, boundary: "engine", retryable: true },
  engine_aborted: { status: 502, boundary: "engine", retryable: true },
  engine_timeout: { status: 502, boundary: "engine", retryable: true },
  // It has no longer the routes that its probe found: restarted as another kind, or with another model.
  engine_changed: { status: 502, boundary: "engine", retryable: true },
  backend_differs: { status: 409, boundary: "client", retryable: false },
  token_invariant: { status: 502, boundary: "engine", retryable: true },

  template_refused: { status: 200, boundary: "task", retryable: false },
  prefix_broken: { status: 500, boundary: "service", retryable: false },
  tokens_unavailable: { status: 200, boundary: "engine", retryable: false },

  context_exhausted: { status: 200, boundary: "policy", retryable: false },

  tool_server_failed: { status: 200, boundary: "service", retryable: true },
  task_failed: { status: 200, boundary: "task", retryable: false },
  outcome_too_large: { status: 200, boundary: "policy", retryable: false },

  verifier_failed: { status: 200, boundary: "verifier", retryable: true },
  judge_failed: { status: 200, boundary: "verifier", retryable: true },
  reward_server_failed: { status: 200, boundary: "verifier", retryable: true },

  worker_crashed: { status: 200, boundary: "service", retryable: true },
  worker_unresponsive: { status: 200, boundary: "service", retryable: true },
  crash_limit: { status: 200, boundary: "service", retryable: false },
  shutting_down: { status: 503, boundary: "service", retryable: true },
  not_ready: { status: 503, boundary: "service", retryable: true },
  node_exhausted: { status: 503, boundary: "service", retryable: true },
  disk_full: { status: 507, boundary: "service", retryable: true },
  task_module_invalid: { status: 500, boundary: "service", retryable: false },
  data_dir_in_use: { status: 500, boundary: "service", retryable: false },
  data_damaged: { status: 500, boundary: "service", retryable: false },
  data_dir_unusable: { status: 500, boundary: "service", retryable: false },
  server_unreachable: { status: 503, boundary: "service", retryable: true },
  internal: { status: 500, boundary: "service", retryable: false },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** An error as plain data: on the wire, in the store, and across threads. */
export type ErrorBody = {
  code: ErrorCode;
  message: string;
  boundary: Boundary;
  retryable: boolean;
  /** The offending field of a request, in path notation (`rollouts[2].limits.run_ms`). */
  field?: string;
  /** What to do about it, as one sentence. */
  mend?: string;
  details?: ErrorDetails;
};

/** Where it happened, for people: the line of a user's module, the tool call that hung. */
export type ErrorDetails = Record<string, unknown>;

type ErrorOptions = { field?: string; mend?: string; details?: ErrorDetails; cause?: unknown };

/** An expected failure. Anything else that is thrown is a bug and becomes `internal`. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly mend: string | undefined;
  readonly details: ErrorDetails | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    // Many end with a piece of what somebody else wrote, which may be cut within a character.
    super(message.toWellFormed(), { cause: options.cause });
    this.name = "ServiceError";
    this.code = code;
    this.field = options.field;
    this.mend = options.mend;
    this.details = options.details;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  toBody(): ErrorBody {
    const { boundary, retryable } = ERRORS[this.code];
    const body: ErrorBody = { code: this.code, message: this.message, boundary, retryable };
    if (this.field !== undefined) body.field = this.field;
    if (this.mend !== undefined) body.mend = this.mend;
    if (this.details !== undefined) body.details = this.details;
    return body;
  }
}

/** An error that nobody throws, because it is how something ends. */
export function errorBodyOf(code: ErrorCode, message: string): ErrorBody {
  const { boundary, retryable } = ERRORS[code];
  return { code, message, boundary, retryable };
}

/** Turns whatever was thrown into plain data. A bug keeps its message, so that it can be reported. */
export function toErrorBody(thrown: unknown): ErrorBody {
  if (thrown instanceof ServiceError) return thrown.toBody();
  if (isShortage(thrown)) return shortage(thrown).toBody();
  const message = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
  return { code: "internal", message, boundary: "service", retryable: false };
}

/** Of the operating system's errors: what the kernel gave to somebody else, and may have a moment later. */
const SHORTAGES = ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"];

function isShortage(thrown: unknown): thrown is Error {
  const code = (thrown as { code?: unknown } | null)?.code;
  return thrown instanceof Error && typeof code === "string" && SHORTAGES.includes(code);
}

function shortage(cause: Error): ServiceError {
  const mend = "raise the service's limits (ulimit -n, ulimit -u), or give it fewer slots";
  const message = `the node has no descriptors, processes or memory left: ${cause.message}`;
  return new ServiceError("node_exhausted", message, { mend, cause });
}

/** Rebuilds an error that crossed a thread or the wire. */
export function fromErrorBody(body: ErrorBody): ServiceError {
  const options: ErrorOptions = {};
  if (body.field !== undefined) options.field = body.field;
  if (body.mend !== undefined) options.mend = body.mend;
  if (body.details !== undefined) options.details = body.details;
  return new ServiceError(body.code, body.message, options);
}

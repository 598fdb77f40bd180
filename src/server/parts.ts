import type { EngineChoice, EngineProfile } from "../inference/engine-profile.ts";
import type { Leaving } from "../inference/registered.ts";
import type { Weights } from "../inference/weights.ts";
import type { GroupSubmission } from "../pipeline/group-parts.ts";
import type { BatchSubmission } from "../pipeline/live-batch.ts";
import type { Submission } from "../pipeline/parts.ts";
import type { Scheduler } from "../pipeline/scheduler.ts";
import type { BatchRequest, GroupOrigin } from "../protocol/batch.ts";
import type { GroupRequest } from "../protocol/group.ts";
import type { RolloutRequest } from "../protocol/rollout.ts";
import type { Store } from "../store/store.ts";
import type { Gate } from "./gate.ts";

export type BackendView = {
  id: string;
  url: string;
  model: string;
  /** Trajectories that live on it now. */
  in_flight: number;
  /** Calls of theirs that it works on. */
  turns: number;
  /** `draining` takes no new trajectories; `ejected` and `trial` were found failing, see `why`. */
  state: "healthy" | "trial" | "ejected" | "draining";
  why: string | null;
  load: LoadView;
  /** What its probe found; null for one that was added before probes looked. */
  engine: EngineProfile | null;
  /** The model's Hugging Face folder; without one its rollouts are in text mode. */
  model_dir: string | null;
};

/** Units: tokens, of the trajectories that live there; requests of the engine; a share of its memory. */
export type LoadView = {
  context_tokens: number;
  expected_tokens: number;
  running: number | null;
  waiting: number | null;
  kv_use: number | null;
};

/** Why a trajectory went where it is. */
export type DecisionView = {
  at_ms: number;
  job_id: string;
  backend_id: string;
  policy: string;
  reason: string;
  from: string | null;
  cause: string | null;
  scores: { id: string; score: number | null }[];
  excluded: { id: string; why: string }[];
};

export type AddBackend = {
  url: string;
  model?: string | undefined;
  /** Absolute path on the node. */
  model_dir?: string | undefined;
  api_key_env?: string | undefined;
  engine?: EngineChoice | undefined;
};

/** The inference servers as the routes use them. */
export interface Backends {
  list(): BackendView[];
  /** Probes and adds one, or opens one again. @throws ServiceError `engine_*`, `backend_differs` */
  add(request: AddBackend, signal: AbortSignal): Promise<BackendView>;
  /** False when there is none of that id. Trajectories that live on it end there, or go on elsewhere. */
  remove(id: string, trajectories: Leaving): boolean;
  /** As `remove`, but it stays in the list until it is removed, or added again. */
  drain(id: string, trajectories: Leaving): boolean;
  /** The newest decisions first; of one backend, or of all. */
  decisions(limit: number, id?: string): DecisionView[];
}

/** What keeps some rollouts from running, and what to do. */
export type MissingPart = { what: "driver" | "image" | "backend"; why: string; mend: string };

/** What the routes are made of. */
export type ServerParts = {
  store: Store;
  scheduler: Scheduler;
  backends: Backends;
  /** How sandboxes are made (`none`: not at all, as the operator wants it), and what that lacks now. */
  sandboxes: { driver: string; missing(): MissingPart[] };
  weights: Pick<Weights, "version" | "paused" | "view" | "pause" | "announce" | "resume">;
  /** Checks a request and gives it its task kind, limits and id. @throws ServiceError */
  accept(request: RolloutRequest): Submission;
  /** The same for a group of a client's. @throws ServiceError */
  acceptGroup(request: GroupRequest, client: string): GroupSubmission;
  acceptBatch(request: BatchRequest, client: string): BatchSubmission;
  /** Instances that are added to a batch later. */
  acceptInstances(origin: GroupOrigin, instances: GroupRequest["instance"][]): GroupSubmission[];
  gate: Gate;
  /** A reader of events that takes nothing for as long is cut. */
  slowReaderMs: number;
  maxBodyBytes: number;
  version: string;
};

/** Bun's server, as far as a handler needs it. */
export type ServerEnv = {
  Bindings: {
    /** Exempts the request from the limit of silence. */
    keepOpen(): void;
    /** Ends the connection once its client took nothing for a second, whatever is left to send. */
    closeIfStuck(): void;
    /** Who asks: the name of its token, or where it comes from. */
    client: string;
  };
};

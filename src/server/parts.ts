import type { EngineChoice, EngineProfile } from "../inference/engine-profile.ts";
import type { BatchSubmission } from "../pipeline/batches.ts";
import type { GroupSubmission } from "../pipeline/groups.ts";
import type { Submission } from "../pipeline/parts.ts";
import type { Scheduler } from "../pipeline/scheduler.ts";
import type { BatchRequest, GroupBase } from "../protocol/batch.ts";
import type { GroupRequest } from "../protocol/group.ts";
import type { RolloutRequest } from "../protocol/rollout.ts";
import type { Store } from "../store/store.ts";

export type BackendView = {
  id: string;
  url: string;
  model: string;
  /** Trajectories that live on it now. */
  in_flight: number;
  /** What its probe found; null for one that was added before probes looked. */
  engine: EngineProfile | null;
  /** The model's Hugging Face folder; without one its rollouts are in text mode. */
  model_dir: string | null;
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
  /** Probes and adds one; adding it again changes nothing. @throws ServiceError `engine_*` */
  add(request: AddBackend, signal: AbortSignal): Promise<BackendView>;
  /** False when there is none of that id. Trajectories that live on it go on. */
  remove(id: string): boolean;
}

/** What the routes are made of. */
export type ServerParts = {
  store: Store;
  scheduler: Scheduler;
  backends: Backends;
  /** Checks a request and gives it its task kind, limits and id. @throws ServiceError */
  accept(request: RolloutRequest): Submission;
  /** The same for a group. @throws ServiceError */
  acceptGroup(request: GroupRequest): GroupSubmission;
  acceptBatch(request: BatchRequest): BatchSubmission;
  /** Instances that are added to a batch later. */
  acceptInstances(base: GroupBase, instances: GroupRequest["instance"][]): GroupSubmission[];
  maxBodyBytes: number;
  version: string;
};

/** Bun's server, as far as a handler needs it. */
export type ServerEnv = {
  Bindings: { keepOpen(): void };
};

import type { AgentOutcome } from "../../agent/loop.ts";
import type { Message } from "../../inference/engine.ts";
import type { RunContext } from "../task-kind.ts";
import type { Cookies, ResourcesServer } from "./resources-server.ts";
import type { HttpInstance } from "./row.ts";

/** What EVAL needs to know of RUN. */
export type GymState = {
  cookies: Cookies;
  /** All that was said behind the prompt. */
  messages: Message[];
  /** Of an environment that has rewarded each step. */
  reward?: number;
  /** The session's name in requests. */
  envId?: string;
};

/** One of NeMo Gym's agents with a resources server: how a rollout goes, and where its reward is from. */
export type GymAgent = {
  run(
    instance: HttpInstance,
    server: ResourcesServer,
    context: RunContext,
  ): Promise<AgentOutcome & Pick<GymState, "reward" | "envId">>;
  reward(instance: HttpInstance, server: ResourcesServer, state: GymState): Promise<number>;
};

/** NeMo Gym sets no number of turns by itself: the context, the time and the rollout's own `max_turns` are the bounds. */
export const MAX_TURNS = 1_000;

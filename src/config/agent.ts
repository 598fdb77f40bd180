import { z } from "zod";
import { count, flag, setting } from "./setting.ts";

/** The agent's loop, where a rollout does not say. */
export const AGENT_SETTINGS = {
  agent_max_turns: setting(count, undefined, "turns of an agent; by default the task kind's own"),
  agent_stuck: setting(
    z.enum(["off", "normal", "strict"]),
    "normal",
    "how little repetition ends a rollout, by the numbers of OpenHands",
  ),
  agent_max_idle_turns: setting(
    count,
    undefined,
    "messages in a row without a tool call that end a rollout; by default only repeated ones do",
  ),
  agent_reminder: setting(z.string(), undefined, "what a message without a tool call is told"),
  agent_forced_finish: setting(flag, false, "tell the model when it has its last turn"),
  agent_max_sampled_tokens: setting(count, undefined, "tokens that a rollout may sample in total"),
  agent_max_context_tokens: setting(count, undefined, "tokens that a conversation may have"),
} as const;

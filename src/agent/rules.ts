/** What bounds an agent's rollout beside its time. Defaults are OpenHands' and so ProRL Agent's. */
export type AgentRules = {
  maxTurns: number;
  /** How little repetition ends a rollout: see `stop-rules.ts`. */
  stuck: "off" | "normal" | "strict";
  /** So many messages in a row without a tool call end the rollout. Null: only repeated ones do. */
  maxIdleTurns: number | null;
  /** What a message without a tool call is answered with; the second also allows to give up. */
  reminders: readonly [first: string, later: string];
  /** Tells the model before its last turn that it is the last one. */
  forcedFinish: boolean;
  /** Tokens that the model may sample in all its turns together. */
  maxSampledTokens: number | null;
  /** Tokens that the conversation may have. */
  maxContextTokens: number | null;
};

const CONTINUE =
  "Please continue working on the task. When you have solved it, call the finish tool with your answer. Never ask for human help.";

export const DEFAULT_RULES: Omit<AgentRules, "maxTurns"> = {
  stuck: "normal",
  maxIdleTurns: null,
  reminders: [CONTINUE, `${CONTINUE} If you want to give up, call the finish tool and say so.`],
  forcedFinish: false,
  maxSampledTokens: null,
  maxContextTokens: null,
};

export const LAST_TURN =
  "This is your last turn. Call the finish tool now with the best answer that you have.";

import { z } from "zod";
import type { Message } from "../../inference/engine.ts";
import { type GymAgent, MAX_TURNS } from "./gym-agent.ts";
import { responseOf } from "./resources-server.ts";

const resetSchema = z.looseObject({
  observation: z.string().nullish(),
  info: z
    .looseObject({
      supports_explicit_close: z.unknown().optional(),
      supports_step_idempotency: z.unknown().optional(),
    })
    .nullish(),
});
const stepSchema = z.looseObject({
  observation: z.string().nullish(),
  reward: z.number().default(0),
  terminated: z.boolean().default(false),
  truncated: z.boolean().default(false),
  info: z
    .looseObject({
      tool_outputs: z.array(z.looseObject({ call_id: z.string(), output: z.string() })).nullish(),
    })
    .nullish(),
});

/** The environment takes each message of the model, and its rewards are added up. Source: Gym's `gymnasium_agent`. */
export const gymnasiumAgent: GymAgent = {
  async run(instance, server, context) {
    const { row, messages, serverTools } = instance;
    const { observation, info } = await server.ask("reset", row, resetSchema);
    const repeatable = info?.supports_step_idempotency === true;
    let reward = 0;
    try {
      const outcome = await context.agent({
        prompt: { messages: [...messages, ...observed(observation)] },
        tools: [],
        ownTools: serverTools.map((schema) => server.tool(schema)),
        maxTurns: MAX_TURNS,
        async environment(said) {
          const named = repeatable ? { _ng_step_request_id: crypto.randomUUID() } : {};
          const body = { ...row, response: responseOf([said]), ...named };
          const step = await server.ask("step", body, stepSchema, repeatable);
          reward += step.reward;
          const outputs = (step.info?.tool_outputs ?? []).map(
            ({ call_id, output }): Message => ({
              ...{ role: "tool", content: output, tool_call_id: call_id },
            }),
          );
          return {
            messages: [...outputs, ...observed(step.observation)],
            done: step.terminated || step.truncated,
          };
        },
      });
      return { ...outcome, reward };
    } finally {
      if (info?.supports_explicit_close === true) await server.close({});
    }
  },

  reward: async (_instance, _server, state) => state.reward as number,
};

function observed(observation: string | null | undefined): Message[] {
  return observation ? [{ role: "user", content: observation }] : [];
}

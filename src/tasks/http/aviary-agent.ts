import { z } from "zod";
import type { Message } from "../../inference/engine.ts";
import { type GymAgent, MAX_TURNS } from "./gym-agent.ts";
import { itemsOf, responseOf } from "./resources-server.ts";
import { functionSchema, toolSchemaOf } from "./row.ts";

const textSchema = z.looseObject({ role: z.string(), content: z.string() });
const outputSchema = z.looseObject({
  type: z.literal("function_call_output"),
  call_id: z.string(),
  output: z.string(),
});
const observationsSchema = z.array(z.union([outputSchema, textSchema]));
const seedSchema = z.looseObject({
  env_id: z.string(),
  obs: observationsSchema.min(1),
  tools: z.array(functionSchema),
});
const stepSchema = z.looseObject({ obs: observationsSchema, done: z.boolean() });

/** The environment brings the tools and takes all calls of a message together. Source: Gym's `aviary_agent`. */
export const aviaryAgent: GymAgent = {
  async run(instance, server, context) {
    const begin = { task_idx: instance.row.task_idx };
    const { env_id, obs, tools } = await server.ask("seed_session", begin, seedSchema);
    try {
      const outcome = await context.agent({
        prompt: { messages: [...instance.messages, ...obs.map(messageOf)] },
        tools: [],
        ownTools: tools.map((tool) => server.tool(toolSchemaOf(tool))),
        maxTurns: MAX_TURNS,
        async environment(said) {
          const calls = itemsOf(said, 0).filter(({ type }) => type === "function_call");
          if (calls.length === 0) return { messages: [], done: true };
          const step = await server.ask("step", { env_id, action: calls }, stepSchema);
          return { messages: step.obs.map(messageOf), done: step.done };
        },
      });
      return { ...outcome, envId: env_id };
    } finally {
      await server.close({ env_id });
    }
  },

  reward(instance, server, { messages, envId }) {
    const session = {
      env_id: envId,
      group_id: String(instance.row.task_idx),
      contains_transitions: false,
    };
    return server.verify(instance.row, { ...responseOf(messages), ...session });
  },
};

function messageOf(observation: z.output<typeof observationsSchema>[number]): Message {
  if ("call_id" in observation) {
    const { call_id, output } = observation as z.output<typeof outputSchema>;
    return { role: "tool", content: output, tool_call_id: call_id };
  }
  const { role, content } = observation as z.output<typeof textSchema>;
  return { role: role === "system" ? "system" : "user", content };
}

import { z } from "zod";
import { type GymAgent, MAX_TURNS } from "./gym-agent.ts";
import { responseOf } from "./resources-server.ts";

/** Each call of a tool is a request of its own, and the whole conversation is verified. Source: Gym's `simple_agent`. */
export const simpleAgent: GymAgent = {
  async run(instance, server, context) {
    await server.ask("seed_session", instance.row, z.unknown());
    return await context.agent({
      prompt: { messages: instance.messages },
      tools: instance.agentTools,
      ownTools: instance.serverTools.map((schema) => server.tool(schema)),
      // A message without a call is the answer.
      isAnswer: () => true,
      malformedText: (problem) =>
        JSON.stringify({ error: `Invalid tool call arguments: ${problem}` }),
      maxTurns: MAX_TURNS,
      mayRepeat: true,
    });
  },

  reward: (instance, server, { messages }) => server.verify(instance.row, responseOf(messages)),
};

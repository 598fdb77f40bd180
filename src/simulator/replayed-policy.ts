import { z } from "zod";
import type { Said, SimulatedMessage } from "./conversation.ts";

/** Recorded rollouts, by their first user message. */
export type ReplayedPolicy = { kind: "replayed"; rollouts: Map<string, Said[][]> };

const messageSchema = z.looseObject({
  role: z.string(),
  content: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) }))
    .nullish(),
});

const trajectorySchema = z.looseObject({
  messages: z.array(messageSchema),
  turns: z.array(z.looseObject({ message: z.int().min(0), finish_reason: z.string() })),
});

type Recorded = z.output<typeof trajectorySchema>;

/**
 * A recorded trajectory, as `rolloutd run` writes it or `GET …/trajectory` gives it; null for anything else.
 */
export function recordedIn(value: unknown): Recorded | null {
  const outer = value as { trajectory?: unknown } | null;
  const parsed = trajectorySchema.safeParse(outer?.trajectory ?? value);
  return parsed.success ? parsed.data : null;
}

/** Rollouts of the same first user message are variants of one another. */
export function replayOf(recorded: readonly Recorded[]): ReplayedPolicy {
  const rollouts = new Map<string, Said[][]>();
  for (const { messages, turns } of recorded) {
    const asked = messages.find(({ role }) => role === "user")?.content ?? "";
    const said = turns.flatMap(({ message, finish_reason }): Said[] => {
      const spoken = messages[message];
      if (!spoken) return [];
      const { content, reasoning_content: thought, tool_calls } = spoken;
      const thinking = thought ? `<think>\n${thought}\n</think>\n\n` : "";
      return [
        {
          content: `${thinking}${content ?? ""}`,
          toolCalls: (tool_calls ?? []).map((call) => call.function),
          finishReason: finish_reason,
        },
      ];
    });
    rollouts.set(asked, [...(rollouts.get(asked) ?? []), said]);
  }
  return { kind: "replayed", rollouts };
}

/** What was said in that turn of that rollout; undefined where none was recorded. */
export function replayedTurn(
  { rollouts }: ReplayedPolicy,
  messages: readonly SimulatedMessage[],
  seed: number,
  turn: number,
): Said | undefined {
  const asked = messages.find(({ role }) => role === "user")?.content ?? "";
  const variants = rollouts.get(asked) ?? [];
  const index = ((seed % variants.length) + variants.length) % variants.length;
  return variants[index]?.[turn];
}

import { z } from "zod";

const contentSchema = z
  .union([z.string(), z.array(z.object({ type: z.literal("text"), text: z.string() })), z.null()])
  .optional()
  .transform((content) => {
    if (Array.isArray(content)) return content.map((part) => part.text).join("");
    return content ?? "";
  });

export const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.enum(["system", "developer", "user"]), content: contentSchema }),
  z.object({
    role: z.literal("assistant"),
    content: contentSchema,
    tool_calls: z
      .array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) }))
      .nullish(),
  }),
  z.object({ role: z.literal("tool"), content: contentSchema, tool_call_id: z.string() }),
]);

export type SimulatedMessage = z.output<typeof messageSchema>;

/** What a policy answers to. */
export type Asked = { messages: SimulatedMessage[]; seed: number | null };

/** What a policy says in one turn; `arguments` is the text that goes onto the wire. */
export type Said = {
  content: string | null;
  toolCalls: { name: string; arguments: string }[];
  finishReason: string;
};

export function countTurns(messages: readonly SimulatedMessage[]): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

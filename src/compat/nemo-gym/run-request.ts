import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { RolloutRequest } from "../../protocol/rollout.ts";
import { instanceOf, softwareInstance } from "./instance.ts";

const text = z.union([
  z.string(),
  z
    .array(z.looseObject({ text: z.string() }))
    .transform((parts) => parts.map((part) => part.text).join("")),
]);

const inputSchema = z.union([
  z.string().transform((content) => [{ role: "user", content }]),
  z.array(z.looseObject({ role: z.string(), content: text })),
]);

/** Keys that mean nothing here are the environment's, and are echoed. */
const bodySchema = z.looseObject({
  responses_create_params: z.looseObject({
    input: inputSchema,
    temperature: z.number().min(0).max(100).nullish(),
    top_p: z.number().gt(0).max(1).nullish(),
    max_output_tokens: z.int().min(1).nullish(),
    metadata: z.record(z.string(), z.string()).nullish(),
  }),
});

export type RunRequest = { row: Record<string, unknown>; rollout: RolloutRequest };

/**
 * A body of `/run` as a rollout: the row's own messages are its prompt, and the caller's sampling parameters are
 * kept to the letter, because trainers weigh samples by them.
 *
 * @throws ServiceError `invalid_field`, `unknown_task_kind`
 */
export function readRunRequest(body: unknown, named: Pick<RolloutRequest, "labels">): RunRequest {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const field = issue?.path.join(".") || "body";
    throw new ServiceError("invalid_field", `${field}: ${issue?.message ?? "invalid"}`, { field });
  }
  const { input, temperature, top_p, max_output_tokens } = parsed.data.responses_create_params;
  const of = (...roles: string[]) =>
    input.filter(({ role }) => roles.includes(role)).map(({ content }) => content);
  const user = of("user").join("\n\n");
  const row = body as Record<string, unknown>;
  const software = softwareInstance(row);
  if (user === "" && !software) {
    const field = "responses_create_params.input";
    throw new ServiceError("invalid_field", `${field}: has no user message`, { field });
  }
  const prompts = { system_prompt: of("system", "developer").join("\n\n"), user_prompt: user };
  // An issue as it stands is no prompt: the task kind has one to go around it.
  const bare = software && (user === "" || user.trim() === `${software.problem_statement}`.trim());
  return {
    row,
    rollout: {
      ...named,
      instance: software ?? instanceOf(row, input),
      ...(!bare && { agent: prompts }),
      sampling: {
        ...(typeof temperature === "number" && { temperature }),
        ...(typeof top_p === "number" && { top_p }),
        ...(typeof max_output_tokens === "number" && { max_tokens: max_output_tokens }),
      },
      // A trainer can't put a sample together from a history that was rewritten.
      chat: { history: "keep" },
    },
  };
}

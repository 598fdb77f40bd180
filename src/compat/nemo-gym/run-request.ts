import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { Message } from "../../inference/engine.ts";
import type { RolloutRequest } from "../../protocol/rollout.ts";
import { instanceOf } from "./instance.ts";
import { messagesOf } from "./messages.ts";
import type { GymServers } from "./scorer.ts";

/** Keys that mean nothing here are the environment's, and are echoed. */
const bodySchema = z.looseObject({
  responses_create_params: z.looseObject({
    input: z.unknown(),
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
export function readRunRequest(
  body: unknown,
  named: Pick<RolloutRequest, "labels">,
  servers: GymServers = {},
): RunRequest {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const field = issue?.path.join(".") || "body";
    throw new ServiceError("invalid_field", `${field}: ${issue?.message ?? "invalid"}`, { field });
  }
  const { temperature, top_p, max_output_tokens } = parsed.data.responses_create_params;
  const row = body as Record<string, unknown>;
  return {
    row,
    rollout: {
      ...named,
      ...gymRollout(row, servers),
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

/**
 * A row of NeMo Gym's as an instance, with the prompt that it asks for.
 *
 * @throws ServiceError `invalid_field`, `unknown_task_kind`
 */
export function gymRollout(
  row: Record<string, unknown>,
  servers: GymServers,
): Pick<RolloutRequest, "instance" | "agent"> {
  const instance = instanceOf(row, servers);
  if (hasOwnPrompt(instance)) return { instance };
  const { input = [] } = (row.responses_create_params ?? {}) as { input?: unknown };
  const messages = messagesOf(input);
  const user = joined(messages, "user");
  const issue = instance.problem_statement;
  // An issue as it stands is no prompt: the task kind has one to go around it.
  if (issue !== undefined && (user === "" || user.trim() === `${issue}`.trim())) {
    return { instance };
  }
  if (user === "") {
    const field = "responses_create_params.input";
    throw new ServiceError("invalid_field", `${field}: has no user message`, { field });
  }
  return { instance, agent: { system_prompt: joined(messages, "system"), user_prompt: user } };
}

function hasOwnPrompt({ data_source, gym_row, verifier }: RolloutRequest["instance"]): boolean {
  return gym_row !== undefined || (data_source === "reasoning" && typeof verifier === "string");
}

function joined(messages: readonly Message[], wanted: Message["role"]): string {
  const texts = messages.filter(({ role }) => role === wanted).map(({ content }) => content);
  return texts.join("\n\n");
}

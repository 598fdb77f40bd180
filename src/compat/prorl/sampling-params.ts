import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { fieldPath } from "../../lib/field-path.ts";

/** Merged datasets and Python clients send `null` for what they leave out. */
const maybe = <S extends z.ZodType>(schema: S) =>
  schema.nullish().transform((value) => value ?? undefined);
const ignored = z.unknown();

/**
 * What a client sends as `sampling_params`: settings of the agent and of its model in one object. The names
 * are upstream's and OpenHands'; one that is not listed is refused, because it would be lost without a word.
 *
 * Source: ProRL-Agent-Server's request, OpenHands 0.40 `LLMConfig`.
 */
const schema = z.strictObject({
  max_iterations: maybe(z.int().min(1).max(10_000)),
  strict_loop_detector: maybe(z.boolean()),
  ensure_thinking_end_properly: maybe(z.boolean()),
  is_reasoning_task: maybe(z.boolean()),
  is_inference: maybe(z.boolean()),

  model: maybe(z.string().min(1)),
  api_key: maybe(z.string()),
  temperature: maybe(z.number().min(0).max(100)),
  top_p: maybe(z.number().gt(0).max(1)),
  top_k: maybe(z.number().int().min(-1)),
  seed: maybe(z.int()),
  max_output_tokens: maybe(z.int().min(1)),
  max_model_len: maybe(z.int().min(1)),
  token_level_generation: maybe(z.boolean()),
  custom_tokenizer: maybe(z.union([z.string().min(1), z.record(z.string(), z.unknown())])),
  enable_thinking: maybe(z.boolean()),
  native_tool_calling: maybe(z.boolean()),

  // Taken and left aside: the server has retries, limits and logs of its own.
  ...Object.fromEntries(
    [
      ...["enable_vision", "enable_a11y_tree", "timeout", "num_retries", "retry_multiplier"],
      ...["retry_min_wait", "retry_max_wait", "max_message_chars", "drop_params"],
      ...["modify_params", "log_completions", "log_completions_folder", "base_url"],
      ...["api_version", "aws_access_key_id", "aws_secret_access_key", "aws_region_name"],
      ...["openrouter_site_url", "openrouter_app_name", "max_input_tokens", "disable_vision"],
      ...["input_cost_per_token", "output_cost_per_token", "ollama_base_url"],
      ...["caching_prompt", "custom_llm_provider", "disable_stop_word", "reasoning_effort"],
    ].map((name) => [name, ignored.optional()]),
  ),
});

export type SamplingParams = {
  maxIterations: number;
  strictLoopDetector: boolean;
  ensureThinkingEndProperly: boolean;
  isReasoningTask: boolean;
  isInference: boolean;
  model: string | null;
  apiKey: string | null;
  temperature: number;
  topP: number;
  topK: number | null;
  seed: number | null;
  maxOutputTokens: number | null;
  maxModelLen: number;
  /** Path or Hugging Face name of the model's folder; set exactly in token mode. */
  tokenizer: string | null;
  enableThinking: boolean;
};

/** @throws ServiceError `unknown_field`, `invalid_field`, naming the key */
export function readSamplingParams(value: unknown): SamplingParams {
  const parsed = schema.safeParse(value ?? {});
  if (!parsed.success) throw refusal(parsed.error.issues[0]);
  const given = parsed.data;
  const tokenMode = given.token_level_generation ?? false;
  return {
    maxIterations: given.max_iterations ?? 2,
    strictLoopDetector: given.strict_loop_detector ?? false,
    ensureThinkingEndProperly: given.ensure_thinking_end_properly ?? false,
    isReasoningTask: given.is_reasoning_task ?? false,
    isInference: given.is_inference ?? false,
    // `hosted_vllm/` names the client library's provider, not the model.
    model: given.model?.replace(/^(hosted_vllm|openai)\//, "") ?? null,
    // Clients of engines without keys send an empty one.
    apiKey: given.api_key || null,
    temperature: given.temperature ?? 0,
    topP: given.top_p ?? 1,
    topK: given.top_k ?? null,
    seed: given.seed ?? null,
    maxOutputTokens: given.max_output_tokens ?? null,
    maxModelLen: given.max_model_len ?? 32_768,
    tokenizer: tokenMode ? tokenizerOf(given.custom_tokenizer) : null,
    enableThinking: given.enable_thinking ?? true,
  };
}

function tokenizerOf(given: unknown): string {
  if (typeof given === "string") return given;
  throw new ServiceError("invalid_field", "token_level_generation needs a custom_tokenizer", {
    field: "sampling_params.custom_tokenizer",
    mend: "name the model's Hugging Face folder, or turn token_level_generation off",
  });
}

function refusal(issue: z.core.$ZodIssue | undefined): ServiceError {
  if (issue?.code === "unrecognized_keys") {
    const field = fieldPath(["sampling_params", ...issue.path, issue.keys[0] ?? ""]);
    return new ServiceError("unknown_field", `unknown key: ${field}`, { field });
  }
  const field = fieldPath(["sampling_params", ...(issue?.path ?? [])]);
  const message = `${field}: ${issue?.message ?? "invalid"}`;
  return new ServiceError("invalid_field", message, { field });
}

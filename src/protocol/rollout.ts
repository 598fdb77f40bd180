import { z } from "zod";
import { labelsSchema } from "./labels.ts";

/** Ids go into file names, log lines and URLs, so they are kept to what is safe in all of them. */
export const rolloutIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "must be 1-128 of A-Z a-z 0-9 . _ -");

const milliseconds = z
  .int()
  .min(1)
  .max(7 * 24 * 3600 * 1000);

/**
 * Time limits of one rollout. Units: milliseconds. What is left out is the server's default. For how long the service makes
 * a rollout wait, between stages or for a call of its model, counts against `total_ms` alone.
 */
export const limitsSchema = z.strictObject({
  init_ms: milliseconds.optional(),
  run_ms: milliseconds.optional(),
  eval_ms: milliseconds.optional(),
  total_ms: milliseconds.optional(),
  /** The work of all stages together, queues left out. */
  active_ms: milliseconds.optional(),
});

/** Sampling parameters, passed to the engine as they are. */
export const samplingSchema = z.strictObject({
  temperature: z.number().min(0).max(100).optional(),
  top_p: z.number().gt(0).max(1).optional(),
  top_k: z.int().min(-1).optional(),
  min_p: z.number().min(0).max(1).optional(),
  max_tokens: z.int().min(1).optional(),
  seed: z.int().optional(),
  stop: z.array(z.string()).max(16).optional(),
  presence_penalty: z.number().optional(),
  frequency_penalty: z.number().optional(),
  repetition_penalty: z.number().gt(0).optional(),
});

export const toolNameSchema = z.enum([
  "execute_bash",
  "execute_ipython_cell",
  "str_replace_editor",
  "think",
  "finish",
]);

export const agentSchema = z.strictObject({
  max_turns: z.int().min(1).max(10_000).optional(),
  /** Time limit of one tool call. */
  tool_timeout_ms: milliseconds.optional(),
  /** A command that prints nothing for as long is answered for, and goes on. */
  tool_quiet_ms: milliseconds.optional(),
  /** Tool servers (MCP): names of the operator's, or `{name, url}`; instead of the row's and the task kind's. */
  mcp_servers: z
    .array(z.union([z.string(), z.strictObject({ name: z.string(), url: z.string() })]))
    .max(16)
    .optional(),
  /** What a message without a tool call is told, instead of the reminder to go on. */
  reminder: z.string().min(1).max(10_000).optional(),
  /** How little repetition ends the rollout. */
  stuck: z.enum(["off", "normal", "strict"]).optional(),
  /** So many messages in a row without a tool call end it. */
  max_idle_turns: z.int().min(1).optional(),
  /** Tells the model before its last turn that it is the last one. */
  forced_finish: z.boolean().optional(),
  /** Tokens that the model may sample in all its turns together. */
  max_sampled_tokens: z.int().min(1).optional(),
  max_context_tokens: z.int().min(1).optional(),
  /** Instead of the task kind's own; `{{problem}}` and the like stand for fields of the row. */
  system_prompt: z.string().max(100_000).optional(),
  user_prompt: z.string().min(1).max(1_000_000).optional(),
  /** Instead of the task kind's own. */
  tools: z.array(toolNameSchema).min(1).optional(),
});

export const DIALECTS = [
  ...(["apertus", "cohere", "deepseek", "dsml", "function_call", "functionary"] as const),
  ...(["functiongemma", "gemma4", "gigachat", "glm", "granite", "harmony", "hermes"] as const),
  ...(["hunyuan_v3", "internlm", "kimi", "kimi_k3", "lfm2", "llama3_json", "minicpm"] as const),
  ...(["minimax_m2", "minimax_m3", "mistral", "muse", "nemotron", "none", "olmo3"] as const),
  ...(["openhands", "pythonic", "qwen3_coder", "seed_oss", "solar", "tool_calls"] as const),
] as const;

/** How the conversation becomes a prompt. */
export const chatSchema = z.strictObject({
  /** Variables of the model's chat template, such as `enable_thinking`. */
  template_kwargs: z.record(z.string(), z.json()).optional(),
  /**
   * Token ids only: `keep` leaves earlier turns as they were sampled, also where the template would rewrite
   * them (Qwen3 drops earlier reasoning); `template` follows it, and the trajectory forks there.
   */
  history: z.enum(["template", "keep"]).optional(),
  /** Token ids only: how the model writes tool calls, instead of what its template shows. */
  dialect: z.enum(DIALECTS).optional(),
});

/**
 * A name of `rolloutd images`, a path on the node (SIF, tar or folder), an archive, or a registry's reference;
 * `sandbox/images/reference.ts` takes it apart.
 */
export const imageSchema = z
  .string()
  .max(4096)
  .regex(
    /^([A-Za-z0-9][A-Za-z0-9._-]{0,127}|\/.*|(docker|oci)-archive:\/.+|(docker|oras):\/\/[^\s/-]\S*)$/,
    "must be a name, an absolute path, docker-archive:/PATH, oci-archive:/PATH, or a reference " +
      "that begins with docker:// or oras://",
  );

export const rolloutRequestSchema = z.strictObject({
  /** Client-chosen: the same id with the same body is the same rollout. */
  id: rolloutIdSchema.optional(),
  /** By its name, instead of by the row's `data_source`. */
  task_kind: z.string().min(1).optional(),
  /** The dataset row; `data_source` chooses the task kind. */
  instance: z.looseObject({ data_source: z.string().min(1) }),
  sampling: samplingSchema.optional(),
  agent: agentSchema.optional(),
  chat: chatSchema.optional(),
  /** `exact` fails where token ids can't be had, `text` leaves them aside; by default whichever can be. */
  tokens: z.enum(["exact", "text", "auto"]).optional(),
  image: imageSchema.optional(),
  /**
   * Instead of an agent: the row's own solution, which has to earn 1, also where it is put into the agent's sandbox and
   * taken from there, or nothing, which has to earn 0.
   */
  golden: z.enum(["solution", "nothing", "solution_by_agent"]).optional(),
  limits: limitsSchema.optional(),
  /** How often it may fail for reasons that are not its own; what the policy did is final. */
  num_attempts: z.int().min(1).max(20).optional(),
  labels: labelsSchema.optional(),
  /** One point goes before what waits for a minute less. It orders the work of one client. */
  priority: z.int().min(-100).max(100).optional(),
  /** It is cancelled when its lease was not renewed for as long. */
  lease_ms: z
    .int()
    .min(1000)
    .max(7 * 24 * 3600 * 1000)
    .optional(),
  /** Is sent the rollout when it is over, signed. */
  callback_url: z
    .url({ protocol: /^https?$/, error: "must be an http: or https: URL" })
    .max(2048)
    .optional(),
});

export const submitSchema = z.strictObject({
  rollouts: z.array(rolloutRequestSchema).min(1).max(10_000),
  /** Wait for all of them, at most this long. */
  wait_ms: z.int().min(0).max(600_000).optional(),
});

export type RolloutRequest = z.infer<typeof rolloutRequestSchema>;

/**
 * How the rollouts of another API reach their engines, which its clients say with each rollout. Stored with
 * the job, the key too: the data folder is this user's alone.
 */
export type EngineRoute = {
  model: string;
  max_model_len: number;
  api_key?: string;
  /** The model's Hugging Face folder, by tokens; without it by messages. */
  model_dir?: string;
};

/** What a worker needs of a request, stored with the job as JSON. */
export type RolloutOptions = Pick<
  RolloutRequest,
  "sampling" | "agent" | "chat" | "image" | "tokens" | "golden"
> & { route?: EngineRoute };

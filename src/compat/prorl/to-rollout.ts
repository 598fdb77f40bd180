import type { EngineRoute, RolloutRequest } from "../../protocol/rollout.ts";
import type { ProcessRequest } from "./process-request.ts";

/** Label of its rollouts, by which a restarted service knows them. */
export const API = "prorl";

/**
 * A call of `/process` as a rollout of ours, with the way to its engine.
 *
 * In token mode earlier turns stay as they were sampled, also where the chat template would rewrite them: that
 * is how ProRL's trainers put a trajectory together.
 */
export function toRollout(
  { instance, params }: ProcessRequest,
  { id, modelDir, timeoutMs }: { id: string; modelDir: string | null; timeoutMs: number },
): { rollout: RolloutRequest; route: EngineRoute } {
  const { temperature, topP, topK, seed, maxOutputTokens, maxModelLen } = params;
  const byTokens = modelDir !== null;
  // In text mode upstream asks for 4,096 tokens where nothing is said; by tokens for what fits.
  const maxTokens = byTokens ? null : (maxOutputTokens ?? 4096);
  return {
    rollout: {
      id,
      instance,
      ...(params.isReasoningTask && { task_kind: "reasoning" }),
      labels: { api: API },
      sampling: {
        temperature,
        top_p: topP,
        ...(topK !== null && { top_k: topK }),
        ...(seed !== null && { seed }),
        ...(maxTokens !== null && { max_tokens: maxTokens }),
      },
      agent: {
        max_turns: params.maxIterations,
        ...(params.strictLoopDetector && { stuck: "strict" as const }),
      },
      chat: {
        template_kwargs: { enable_thinking: params.enableThinking },
        ...(byTokens && { history: "keep" as const }),
      },
      tokens: byTokens ? "exact" : "text",
      limits: {
        init_ms: timeoutMs,
        run_ms: timeoutMs,
        eval_ms: timeoutMs,
        active_ms: timeoutMs,
      },
    },
    route: {
      model: params.model ?? "",
      max_model_len: maxModelLen,
      ...(params.apiKey !== null && { api_key: params.apiKey }),
      ...(modelDir !== null && { model_dir: modelDir }),
    },
  };
}

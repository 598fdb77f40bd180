import type { Backend } from "../inference/engine.ts";
import type { EngineProfile } from "../inference/engine-profile.ts";
import type { Turns } from "../inference/turn-gate.ts";
import type { EngineRoute } from "../protocol/rollout.ts";

/**
 * A backend as a rollout of another API says that it is called. Such backends are plain addresses that were
 * never probed: ProRL's engine where the rollout is by tokens, OpenAI's chat otherwise.
 */
export function routedBackend(backend: Backend, route: EngineRoute): Backend {
  const { model, max_model_len, api_key, model_dir } = route;
  const profile: EngineProfile = {
    kind: model_dir === undefined ? "openai" : "prorl",
    version: null,
    rung: model_dir === undefined ? "chat" : "prorl_generate",
    max_model_len,
    logprobs: false,
    stop_id_included: null,
    salt: null,
    load: [],
    control: false,
    tokenize: false,
    weight_version: null,
    passed_over: [],
  };
  return {
    id: backend.id,
    url: `${backend.url.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`,
    model,
    profile,
    ...(backend.networks !== undefined && { networks: backend.networks }),
    ...(api_key !== undefined && { apiKey: api_key }),
    ...(model_dir !== undefined && { modelDir: model_dir }),
  };
}

/** Leave for calls whose backends are called so. */
export function routedTurns(turns: Turns, route: EngineRoute): Turns {
  return {
    async enter(call, signal) {
      const lease = await turns.enter(call, signal);
      lease.backend = routedBackend(lease.backend, route);
      return lease;
    },
  };
}

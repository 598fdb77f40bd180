import type { Network } from "../lib/network.ts";
import { endpointOf } from "./endpoint.ts";
import type { EngineChoice, EngineProfile } from "./engine-profile.ts";
import { Connections } from "./exchange.ts";
import type { Probe } from "./probe-call.ts";
import { learnDetails } from "./probe-details.ts";
import { identify } from "./probe-identity.ts";
import { climb } from "./probe-ladder.ts";

export type ProbeOptions = {
  /** Named in errors; `new` where the backend has no id yet. */
  id?: string;
  model?: string;
  apiKey?: string;
  networks?: readonly Network[];
  /** `text` generates nothing and leaves token ids aside; `auto` is the default. */
  engine?: EngineChoice;
  /** Of each request. */
  timeoutMs: number;
  signal: AbortSignal;
};

export type Probed = { model: string; profile: EngineProfile };

/**
 * Asks an inference server what it is and what it serves, chooses the model where only one is there,
 * and generates a few tokens to learn in which way it gives ids.
 *
 * @throws ServiceError `engine_*`, `token_invariant`; `invalid_field` where the model, the address
 * or the kind of engine can't be used.
 */
export async function probeBackend(url: string, options: ProbeOptions): Promise<Probed> {
  const { id = "new", model, apiKey, networks, engine = "auto", timeoutMs, signal } = options;
  using connections = new Connections();
  const bounds = networks === undefined ? {} : { networks };
  const key = apiKey === undefined ? {} : { apiKey };
  const backend = { id, url, model: model ?? "", ...bounds, ...key };
  const endpoint = endpointOf(backend);
  const probe: Probe = { connections, endpoint, backend, timeoutMs, signal };
  const identity = await identify(probe, model, engine);
  const known = { ...probe, backend: { ...backend, model: identity.model } };
  const { rung, passedOver, reply } = await climb(known, engine, identity);
  // Only ProRL's engine lists no models.
  if (identity.noModels && rung !== "prorl_generate") throw identity.noModels;
  const details = await learnDetails(known, { rung, reply, identity });
  const profile: EngineProfile = {
    kind: kindOf(engine, identity.kind, rung),
    version: identity.version,
    rung,
    max_model_len: identity.maxModelLen,
    ...details,
    weight_version: reply?.weightVersion ?? identity.weightVersion,
    passed_over: passedOver,
  };
  return { model: identity.model, profile };
}

function kindOf(
  engine: EngineChoice,
  found: EngineProfile["kind"] | null,
  rung: EngineProfile["rung"],
): EngineProfile["kind"] {
  if (engine !== "auto" && engine !== "text") return engine;
  if (rung === "prorl_generate") return "prorl";
  if (rung === "sglang_generate") return "sglang";
  if (rung === "chat" || rung === "chat_ids") return found ?? "openai";
  return found ?? "vllm";
}

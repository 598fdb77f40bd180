import { SharedTasks } from "../../lib/shared-tasks.ts";
import type { Backend } from "../engine.ts";
import type { Connections } from "../exchange.ts";
import { loadRemoteModel } from "./remote-model.ts";
import { loadTokenModel, type TokenModel } from "./token-model.ts";

/**
 * Loads the model of each folder once, and where backends have none, each model once over the routes of one of
 * them. Who waits for it and leaves costs the others nothing. What could not be loaded is tried again.
 */
export function tokenModels(
  connections: Connections,
): (backend: Backend, signal: AbortSignal) => Promise<TokenModel> {
  const loaded = new Map<string, TokenModel>();
  const loading = new SharedTasks<TokenModel>();
  return async (backend, signal) => {
    const { modelDir, url, model, profile } = backend;
    // Engines of one model and one tokenizer answer alike, as the pool takes no others.
    const key = modelDir ?? `${model} ${profile?.tokenizer_hash ?? url}`;
    const known = loaded.get(key);
    if (known) return known;
    const found = await loading.run(key, signal, (shared) =>
      modelDir === undefined
        ? loadRemoteModel(connections, backend, shared)
        : loadTokenModel(modelDir),
    );
    loaded.set(key, found);
    return found;
  };
}

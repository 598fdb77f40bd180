import type { Backend } from "../engine.ts";
import type { Connections } from "../exchange.ts";
import { loadRemoteModel } from "./remote-model.ts";
import { loadTokenModel, type TokenModel } from "./token-model.ts";

/**
 * Loads the model of each folder once, and where a backend has none, once for each backend's own routes. What
 * could not be loaded is tried again.
 */
export function tokenModels(
  connections: Connections,
): (backend: Backend, signal: AbortSignal) => Promise<TokenModel> {
  const loaded = new Map<string, Promise<TokenModel>>();
  return (backend, signal) => {
    const { modelDir, url, model } = backend;
    const key = modelDir ?? `${url} ${model}`;
    const known = loaded.get(key);
    if (known) return known;
    const loading =
      modelDir === undefined
        ? loadRemoteModel(connections, backend, signal)
        : loadTokenModel(modelDir);
    loaded.set(key, loading);
    loading.catch(() => loaded.delete(key));
    return loading;
  };
}

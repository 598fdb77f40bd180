import { loadTokenModel, type TokenModel } from "./token-model.ts";

/** Loads each model folder once. A folder that could not be loaded is tried again. */
export function tokenModels(): (path: string) => Promise<TokenModel> {
  const loaded = new Map<string, Promise<TokenModel>>();
  return (path) => {
    const known = loaded.get(path);
    if (known) return known;
    const loading = loadTokenModel(path);
    loaded.set(path, loading);
    loading.catch(() => loaded.delete(path));
    return loading;
  };
}

import type { Backend } from "./engine.ts";

type Difference = { field: "model" | "model_dir" | "engine"; what: string };

/**
 * Why a trajectory could not go from one of two backends to the other with its ids and its messages; null
 * where it could. What an engine does not say of itself is no difference.
 */
export function differenceOf(one: Backend, other: Backend): Difference | null {
  if (one.routed !== other.routed) {
    const what = other.routed ? "it is an address of ProRL's clients" : "they are ProRL's clients'";
    return { field: "engine", what };
  }
  if (one.model !== other.model) {
    return { field: "model", what: `its model is "${other.model}", not "${one.model}"` };
  }
  if (one.modelDir !== other.modelDir) {
    const shown = (dir: string | undefined) => dir ?? "none";
    const what = `its model folder is ${shown(other.modelDir)}, not ${shown(one.modelDir)}`;
    return { field: "model_dir", what };
  }
  const [a, b] = [one.profile, other.profile];
  if (!a || !b) return null;
  if (takesIds(a.rung) !== takesIds(b.rung)) {
    const what = takesIds(a.rung) ? "it takes no token ids" : "it takes token ids, others do not";
    return { field: "engine", what };
  }
  if (differ(a.max_model_len, b.max_model_len)) {
    const what = `its context has ${b.max_model_len} tokens, not ${a.max_model_len}`;
    return { field: "engine", what };
  }
  if (!differ(a.tokenizer_hash, b.tokenizer_hash)) return null;
  return { field: "engine", what: "its tokenizer gives other ids" };
}

function takesIds(rung: string): boolean {
  return rung !== "chat" && rung !== "chat_ids";
}

function differ<T>(a: T | null | undefined, b: T | null | undefined): boolean {
  return a !== null && a !== undefined && b !== null && b !== undefined && a !== b;
}

import type { Backend } from "./engine.ts";

/**
 * What keeps the prefix cache of these weights apart from that of others, for calls by ids and by messages.
 * None before weights were announced, nor where the engine knows no salts. One that does not tell whether its cache was met
 * gets it too, as it took the probe's.
 */
export function saltOf(
  { profile }: Pick<Backend, "profile">,
  weightVersion: string | null,
): { cacheSalt?: string } {
  if (!profile || weightVersion === null || profile.salt === false) return {};
  const knowsSalts = ["vllm", "sglang"].includes(profile.kind) || profile.rung === "chat_ids";
  return knowsSalts ? { cacheSalt: `w${weightVersion}` } : {};
}

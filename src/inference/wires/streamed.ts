/** How a reply is asked for, and put together, that comes in pieces. */
export type Streamed = {
  /** What the request says in addition. */
  ask: Record<string, unknown>;
  /**
   * The reply with one more piece in it, in the shape of a whole one; null begins it.
   *
   * @throws Error for a stream that can't be put together
   */
  add(reply: Json | null, piece: Json): Json;
  /** How many tokens it has so far. */
  count(reply: Json): number;
  /** Whether it may end here without the word for it, which not every server says. */
  isWhole?(reply: Json): boolean;
};

export type Json = Record<string, unknown>;

/** vLLM's: lists are what has come since the last piece, and everything else is the state of things. */
export const streamedByVllm = (count: Streamed["count"]): Streamed => ({
  ask: { stream: true, stream_options: { include_usage: true } },
  add(reply, piece) {
    const { choices, ...rest } = piece;
    const [choice] = Array.isArray(choices) ? choices : [];
    const whole = (reply?.choices as [Json] | undefined) ?? [{}];
    return { ...reply, ...known(rest), choices: [merge(whole[0], choice ?? {}) as Json] };
  },
  count,
});

function merge(whole: unknown, piece: unknown): unknown {
  if (piece === null || piece === undefined) return whole;
  if (Array.isArray(whole) && Array.isArray(piece)) {
    for (const item of piece) whole.push(item);
    return whole;
  }
  if (!isObject(whole) || !isObject(piece)) return piece;
  for (const [key, value] of Object.entries(piece)) {
    if (key !== "__proto__")
      whole[key] = merge(Object.hasOwn(whole, key) ? whole[key] : undefined, value);
  }
  return whole;
}

function known(fields: Json): Json {
  const given = ([key, value]: [string, unknown]) => value !== null && key !== "__proto__";
  return Object.fromEntries(Object.entries(fields).filter(given));
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function lengthOf(list: unknown): number {
  return Array.isArray(list) ? list.length : 0;
}

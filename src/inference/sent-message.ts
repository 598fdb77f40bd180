/**
 * A message as engines read it: reasoning under both of its names, as vLLM from 0.16 on reads `reasoning`
 * only, on some of its routes or on all, and others know `reasoning_content` only.
 *
 * Source: vLLM #27755, #38488; tried with 0.32, whose `/tokenize` drops `reasoning_content`.
 */
export function withReasoning<M extends object>(message: M): M {
  const { reasoning_content } = message as { reasoning_content?: string };
  return reasoning_content ? { ...message, reasoning: reasoning_content } : message;
}

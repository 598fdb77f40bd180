/** How models and their templates mark reasoning, as the texts that open and close it. */
const MARKS: [open: string, close: string][] = [
  ...["think", "thinking", "thought", "reasoning", "scratchpad", "seed:think"].map(
    (tag): [string, string] => [`<${tag}>`, `</${tag}>`],
  ),
  ["[THINK]", "[/THINK]"],
  ["◁think▷", "◁/think▷"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|channel|>analysis<|message|>", "<|end|>"],
];

/**
 * The part of a message behind its reasoning, where an engine leaves reasoning in the text. A block without an end
 * runs to the end of the message.
 */
export function afterThinking(text: string): string {
  let start = 0;
  for (const [, close] of MARKS) {
    const at = text.lastIndexOf(close);
    if (at >= 0) start = Math.max(start, at + close.length);
  }
  const rest = text.slice(start);
  let end = rest.length;
  for (const [open] of MARKS) {
    const at = rest.indexOf(open);
    if (at >= 0) end = Math.min(end, at);
  }
  return rest.slice(0, end);
}

export type Choice = { letter: string; content: string };

const LABELLED = /^\\text\{\(?([A-J])[.:)]*\}\.?\)?(.*)$/s;
const ALONE = /^\(?([A-J])[.:)]*$/;

/** A second label, or a list, behind the first: no choice at all. */
const ANOTHER = /\(?[A-J]\)|(?<![a-zA-Z\\])[A-J](?![a-zA-Z])|[,;]/;

/**
 * Reads a normalised multiple-choice answer: `C`, `(C)`, `C.`, `\text{(C)}12`. Null for all others;
 * content follows only a label that is set as text, because `(C)12` may also be a product.
 */
export function choiceOf(text: string): Choice | null {
  const match = LABELLED.exec(text) ?? ALONE.exec(text);
  if (match === null) return null;
  const [, letter = "", content = ""] = match;
  return ANOTHER.test(content) ? null : { letter, content };
}

const STEP =
  /\\(?:begin|lfloor|lceil|langle|\{)|\\(?:end|rfloor|rceil|rangle|\})|\\[a-zA-Z]+|\\.|[\s\S]/y;
const OPENING = new Set(["(", "[", "{", "\\{", "\\begin", "\\lfloor", "\\lceil", "\\langle"]);
const CLOSING = new Set([")", "]", "}", "\\}", "\\end", "\\rfloor", "\\rceil", "\\rangle"]);

export type Split = { parts: string[]; separators: string[] };

/** Cuts a text at those tokens that are separators and stand outside every bracket, in one pass. */
export function splitTop(text: string, isSeparator: (token: string) => boolean): Split {
  const parts: string[] = [];
  const separators: string[] = [];
  let depth = 0;
  let start = 0;
  STEP.lastIndex = 0;
  for (let match = STEP.exec(text); match; match = STEP.exec(text)) {
    const token = match[0];
    if (OPENING.has(token)) depth++;
    else if (CLOSING.has(token)) depth--;
    else if (depth === 0 && isSeparator(token)) {
      parts.push(text.slice(start, match.index).trim());
      separators.push(token);
      start = match.index + token.length;
    }
  }
  parts.push(text.slice(start).trim());
  return { parts, separators };
}

/** The inside of a bracket pair that spans the whole text, or null. */
export function unwrap(text: string, open: string, close: string): string | null {
  if (!text.startsWith(open) || !text.endsWith(close)) return null;
  if (text.length < open.length + close.length) return null;
  let depth = 0;
  STEP.lastIndex = 0;
  for (let match = STEP.exec(text); match; match = STEP.exec(text)) {
    if (OPENING.has(match[0])) depth++;
    else if (CLOSING.has(match[0]) && --depth === 0 && STEP.lastIndex < text.length) return null;
  }
  return depth === 0 ? text.slice(open.length, text.length - close.length).trim() : null;
}

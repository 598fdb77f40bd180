const BOX_COMMANDS = ["\\boxed", "\\fbox"];

/**
 * The content of the last `\boxed{…}` or `\fbox{…}`, or null where there is none or its braces never
 * close. `\boxed 5`, without braces, boxes what follows up to a blank or the end of the formula.
 * A broken last box does not fall back to an earlier one: the last box is the answer the text ended with.
 * Takes time linear in the length of the text, whatever it holds.
 */
export function lastBoxed(text: string): string | null {
  const command = lastBoxCommand(text);
  if (command === null) return null;
  let at = command.end;
  while (isBlank(text[at])) at++;
  if (text[at] !== "{") return bareContent(text, at);
  return bracedContent(text, at)?.content.trim() ?? null;
}

/** Where the last box command stands. `\boxedfoo` is another command. */
export function lastBoxCommand(text: string): { start: number; end: number } | null {
  let start = -1;
  let end = -1;
  for (const command of BOX_COMMANDS) {
    let at = text.lastIndexOf(command);
    while (at >= 0) {
      const after = at + command.length;
      if (!/[a-zA-Z]/.test(text[after] ?? "")) {
        if (after > end) [start, end] = [at, after];
        break;
      }
      at = at === 0 ? -1 : text.lastIndexOf(command, at - 1);
    }
  }
  return end < 0 ? null : { start, end };
}

/**
 * What the braces at `open` hold, and the place behind them. Escaped braces (`\{`) are set braces, not groups, so they
 * are not counted.
 */
export function bracedContent(text: string, open: number): { content: string; end: number } | null {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    const char = text[at];
    if (char === "\\") at++;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) {
      return { content: text.slice(open + 1, at), end: at + 1 };
    }
  }
  return null;
}

function bareContent(text: string, start: number): string | null {
  let end = start;
  while (end < text.length && !isBlank(text[end]) && text[end] !== "$") end++;
  const content = text.slice(start, end);
  return content === "" ? null : content;
}

function isBlank(char: string | undefined): boolean {
  return char === " " || char === "\n" || char === "\t" || char === "\r";
}

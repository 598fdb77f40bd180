const BOX_COMMANDS = ["\\boxed", "\\fbox"];

/**
 * The content of the last `\boxed{…}` or `\fbox{…}`, or null where there is none or its braces never
 * close. `\boxed 5`, without braces, boxes what follows up to a blank or the end of the formula.
 * A broken last box does not fall back to an earlier one: the last box is the answer the text ended with.
 * Takes time linear in the length of the text, whatever it holds.
 */
export function lastBoxed(text: string): string | null {
  const start = endOfLastBoxCommand(text);
  if (start === null) return null;
  let at = start;
  while (isBlank(text[at])) at++;
  return text[at] === "{" ? bracedContent(text, at) : bareContent(text, at);
}

/** Where the argument of the last box command begins. `\boxedfoo` is another command. */
function endOfLastBoxCommand(text: string): number | null {
  let end = -1;
  for (const command of BOX_COMMANDS) {
    let at = text.lastIndexOf(command);
    while (at >= 0) {
      const after = at + command.length;
      if (!/[a-zA-Z]/.test(text[after] ?? "")) {
        end = Math.max(end, after);
        break;
      }
      at = at === 0 ? -1 : text.lastIndexOf(command, at - 1);
    }
  }
  return end < 0 ? null : end;
}

/** Escaped braces (`\{`) are set braces, not groups, so they are not counted. */
function bracedContent(text: string, open: number): string | null {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    const char = text[at];
    if (char === "\\") at++;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return text.slice(open + 1, at).trim();
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

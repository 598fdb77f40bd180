const ESCAPES = new RegExp(
  [
    String.raw`\x1b\[[0-?]*[ -/]*[@-~]`, // colours, cursor, erasing
    String.raw`\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)`, // titles and links
    String.raw`\x1b[PX^_][^\x1b]*\x1b\\`, // device strings
    String.raw`\x1b[ -/]*[0-~]`, // the short ones
  ].join("|"),
  "g",
);
/** All but tab, newline and what `overwritten` deals with; those above 0x80 are escapes in one character to some terminals. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are its subject.
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * What a terminal would show, as plain lines: escape sequences are gone, and a line that was written over
 * after a carriage return (progress bars) shows its last state.
 */
export function terminalText(raw: string): string {
  const text = raw.includes("\x1b") ? raw.replace(ESCAPES, "") : raw;
  const lines = text.includes("\r") ? text.split("\n").map(overwritten).join("\n") : text;
  return lines.replace(CONTROLS, "");
}

/** Of each column what was written there last. From the end, so that a flood of returns costs no more. */
function overwritten(line: string): string {
  let shown = "";
  for (const part of line.split("\r").reverse()) {
    if (part.length > shown.length) shown += part.slice(shown.length);
  }
  return shown;
}

/** What a message says after its reasoning, where an engine leaves that in the text. */
export function afterThinking(text: string): string {
  const at = text.lastIndexOf("</think>");
  return at < 0 ? text : text.slice(at + "</think>".length);
}

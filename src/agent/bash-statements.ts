import type { Sandbox } from "../sandbox/sandbox.ts";

/** More pieces than this are a script, whose parse would cost more than a refusal is worth. */
const MAX_PIECES = 200;
const PARSE_TIMEOUT_MS = 10_000;

/**
 * Joins pieces until bash itself says that they are complete; prints after how many each statement ends.
 * What it has to say on the way (an unclosed here-document is only a warning) means: not yet.
 */
const PARSER = `acc= n=0
while IFS= read -r -d '' piece; do
  acc+=$piece$'\\n' n=$((n + 1))
  if said=$(bash -n <<<"$acc" 2>&1) && [ -z "$said" ]; then echo "$n"; acc=; fi
done
[ -z "$acc" ]`;

/**
 * The top-level statements of a command, as the sandbox's own bash reads it. Loops, here-documents,
 * continued lines and chains by `;`, `&&`, `|` are one. One as well is what does not parse: to run it shows why.
 */
export async function topLevelStatements(
  command: string,
  sandbox: Pick<Sandbox, "exec">,
  signal: AbortSignal,
): Promise<string[]> {
  const pieces = cutAtNewlines(command);
  if (pieces.length < 2 || pieces.length > MAX_PIECES) return [command];
  const { stdout, exitCode } = await sandbox.exec(["bash", "-c", PARSER], {
    stdin: pieces.map((piece) => `${piece}\0`).join(""),
    timeoutMs: PARSE_TIMEOUT_MS,
    maxOutputBytes: 10_000,
    signal,
  });
  if (exitCode !== 0) return [command];
  const ends = stdout.trim().split("\n").map(Number);
  return ends.map((end, index) => pieces.slice(ends[index - 1] ?? 0, end).join("\n"));
}

/**
 * Cuts where a statement can end: after each line that leaves no quote, here-document or backslash open.
 * Knows nothing of keywords, and where it cuts too little a command is only not refused. Comments and
 * blank lines go with the line after them.
 */
export function cutAtNewlines(command: string): string[] {
  const pieces: string[] = [];
  let begin = 0;
  let at = 0;
  let blank = true;
  const endless = new Set<string>();
  while (at < command.length) {
    const line = readLine(command, at, endless);
    at = line.end;
    blank &&= line.blank;
    if (blank) continue;
    pieces.push(command.slice(begin, at).replace(/\n$/, ""));
    begin = at;
    blank = true;
  }
  const rest = command.slice(begin);
  if (pieces.length > 0 && rest !== "") pieces.push(`${pieces.pop()}\n${rest}`);
  return pieces;
}

const HERE_DOCUMENT = /^<<(-?)[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([^\s;&|<>()'"]+))/;

type HereDocument = { word: string; tabs: boolean };

/**
 * One line with all that belongs to it; `end` is behind its newline.
 * @param endless here-documents that nothing ends any more, so that the rest is not searched again for each
 */
function readLine(
  text: string,
  start: number,
  endless: Set<string>,
): { end: number; blank: boolean } {
  const documents: HereDocument[] = [];
  let blank = true;
  let wordStart = true;
  let at = start;
  while (at < text.length) {
    const char = text[at] as string;
    if (char === "\n") return { end: skipDocuments(text, at + 1, documents, endless), blank };
    if (char === "#" && wordStart) {
      const newline = text.indexOf("\n", at);
      at = newline < 0 ? text.length : newline;
      continue;
    }
    if (char !== " " && char !== "\t") blank = false;
    wordStart = " \t;&|()".includes(char);
    const document = char === "<" ? text.slice(at, at + 256).match(HERE_DOCUMENT) : null;
    if (text.startsWith("<<<", at)) at += 3;
    else if (document) {
      const word = document[2] ?? document[3] ?? document[4] ?? "";
      documents.push({ word, tabs: document[1] === "-" });
      at += document[0].length;
    } else if (char === "'") at = skipQuote(text, at, text[at - 1] === "$");
    else if (char === '"') at = skipQuote(text, at, true);
    else at += char === "\\" ? 2 : 1;
  }
  return { end: text.length, blank };
}

function skipQuote(text: string, start: number, escapes: boolean): number {
  const quote = text[start];
  let at = start + 1;
  while (at < text.length && text[at] !== quote) at += escapes && text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** Where one does not end it may be none (`$((1<<2))`): nothing is skipped then. */
function skipDocuments(
  text: string,
  start: number,
  documents: HereDocument[],
  endless: Set<string>,
): number {
  let at = start;
  const nameOf = ({ word, tabs }: HereDocument) => (tabs ? `-${word}` : `=${word}`);
  if (documents.some((document) => endless.has(nameOf(document)))) return start;
  for (const document of documents) {
    const { word, tabs } = document;
    let line: string | null = null;
    while (line !== word) {
      if (at >= text.length) {
        endless.add(nameOf(document));
        return start;
      }
      const newline = text.indexOf("\n", at);
      const end = newline < 0 ? text.length : newline;
      line = text.slice(at, end);
      if (tabs) line = line.replace(/^\t+/, "");
      at = end + 1;
    }
  }
  return Math.min(at, text.length);
}

import { EditorError, pythonList } from "./editor-error.ts";
import type { EditorFiles } from "./editor-files.ts";

/** Lines shown around an edit. */
const CONTEXT_LINES = 4;
const MAX_ANSWER_CHARS = 16_000;
const MAX_UNDOS = 10;
const MAX_UNDO_CHARS = 32 * 1024 * 1024;

const CLIPPED_FILE =
  "<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. You should retry this tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are looking for.</NOTE>";
const CLIPPED_FOLDER =
  "<response clipped><NOTE>Due to the max output limit, only part of this directory has been shown to you. You should use `ls -la` instead to view large directories incrementally.</NOTE>";

/** The commands of `str_replace_editor`; each answers with what the model sees. */
export class Editor {
  readonly #files: EditorFiles;
  /** What files held before their edits, oldest first. */
  readonly #undos: { path: string; text: string }[] = [];

  constructor(files: EditorFiles) {
    this.#files = files;
  }

  async view(path: string, range: unknown): Promise<string> {
    const text = await this.#files.read(path);
    if (text === null) return await this.#viewFolder(path, range);
    if (range === undefined) return catN(path, text.split("\n"), 1);
    const lines = linesOf(text);
    const [start, end, note] = resolveRange(range, lines.length);
    return catN(path, lines.slice(start - 1, end), start) + note;
  }

  async #viewFolder(path: string, range: unknown): Promise<string> {
    if (range !== undefined) {
      const hint = "The `view_range` parameter is not allowed when `path` points to a directory.";
      throw EditorError.invalid("view_range", range, hint);
    }
    const { shown, hidden } = await this.#files.list(path);
    const intro = `Here's the files and directories up to 2 levels deep in ${path}, excluding hidden items:`;
    const note = `\n${hidden} hidden files/directories in this directory are excluded. You can use 'ls -la ${path}' to see them.`;
    const list = clipped(shown, CLIPPED_FOLDER);
    return [intro, list, ...(hidden > 0 ? [note] : [])].join("\n");
  }

  async create(path: string, text: string): Promise<string> {
    if (await this.#files.exists(path)) {
      const hint = `File already exists at: ${path}. Cannot overwrite files using command \`create\`.`;
      throw EditorError.invalid("path", path, hint);
    }
    await this.#files.create(path, text);
    return `File created successfully at: ${path}`;
  }

  async replace(path: string, old: string, fresh: string): Promise<string> {
    if (old === fresh) {
      const hint = "No replacement was performed. `new_str` and `old_str` must be different.";
      throw EditorError.invalid("new_str", fresh, hint);
    }
    const text = await this.#readFile(path);
    const at = onlyOccurrence(path, text, old);
    const line = lineAt(text, at);
    const edited = text.slice(0, at) + fresh + text.slice(at + old.length);
    await this.#rewrite(path, text, edited);
    const start = Math.max(0, line - CONTEXT_LINES);
    const end = line + CONTEXT_LINES + fresh.split("\n").length - 1;
    const snippet = linesOf(edited).slice(start, end);
    const shown = catN(`a snippet of ${path}`, snippet, start + 1);
    return `The file ${path} has been edited. ${shown}Review the changes and make sure they are as expected. Edit the file again if necessary.`;
  }

  async insert(path: string, after: number, fresh: string): Promise<string> {
    const text = await this.#readFile(path);
    const lines = linesOf(text);
    if (!(Number.isInteger(after) && after >= 0 && after <= lines.length)) {
      const hint = `It should be within the range of allowed values: ${pythonList([0, lines.length])}`;
      throw EditorError.invalid("insert_line", after, hint);
    }
    const added = fresh.split("\n");
    const edited = [...lines.slice(0, after), ...added, ...lines.slice(after)];
    await this.#rewrite(path, text, `${edited.join("\n")}\n`);
    const start = Math.max(0, after - CONTEXT_LINES);
    const snippet = edited.slice(start, after + added.length + CONTEXT_LINES);
    const shown = catN("a snippet of the edited file", snippet, start + 1);
    return `The file ${path} has been edited. ${shown}Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). Edit the file again if necessary.`;
  }

  async undo(path: string): Promise<string> {
    await this.#readFile(path);
    const index = this.#undos.findLastIndex((undo) => undo.path === path);
    const [undo] = index < 0 ? [] : this.#undos.splice(index, 1);
    if (!undo) throw new EditorError(`No edit history found for ${path}.`);
    await this.#files.rewrite(path, undo.text);
    return `Last edit to ${path} undone successfully. ${catN(path, undo.text.split("\n"), 1)}`;
  }

  async #readFile(path: string): Promise<string> {
    const text = await this.#files.read(path);
    if (text !== null) return text;
    const hint = `The path ${path} is a directory and only the \`view\` command can be used on directories.`;
    throw EditorError.invalid("path", path, hint);
  }

  async #rewrite(path: string, before: string, after: string): Promise<void> {
    await this.#files.rewrite(path, after);
    this.#undos.push({ path, text: before });
    const ofPath = this.#undos.filter((undo) => undo.path === path).length;
    if (ofPath > MAX_UNDOS) {
      const oldest = this.#undos.findIndex((undo) => undo.path === path);
      this.#undos.splice(oldest, 1);
    }
    let chars = this.#undos.reduce((sum, { text }) => sum + text.length, 0);
    while (chars > MAX_UNDO_CHARS) chars -= this.#undos.shift()?.text.length ?? chars;
  }
}

/** Without the empty one behind the last newline. */
function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function lineAt(text: string, at: number): number {
  return text.slice(0, at).split("\n").length;
}

function onlyOccurrence(path: string, text: string, old: string): number {
  if (old === "") throw EditorError.invalid("old_str", old, "It must not be empty.");
  const found: number[] = [];
  for (let at = text.indexOf(old); at >= 0; at = text.indexOf(old, at + old.length)) found.push(at);
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  if (first === undefined) {
    const similar = similarLines(text, old);
    const hint =
      similar.length > 0 ? ` It does, but for white space, in lines ${pythonList(similar)}.` : "";
    throw new EditorError(
      `No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.${hint}`,
    );
  }
  const lines = [...new Set(found.map((at) => lineAt(text, at)))];
  throw new EditorError(
    `No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines ${pythonList(lines)}. Please ensure it is unique.`,
  );
}

/** Where the lines of `old` stand with other indentation. */
function similarLines(text: string, old: string): number[] {
  const lines = text.split("\n").map((line) => line.trim());
  const wanted = old
    .trim()
    .split("\n")
    .map((line) => line.trim());
  const fits = (start: number) => wanted.every((line, index) => lines[start + index] === line);
  return lines.flatMap((_, index) => (fits(index) ? [index + 1] : []));
}

/** First and last line, and what to say about them. */
function resolveRange(range: unknown, count: number): [number, number, string] {
  const isRange = Array.isArray(range) && range.length === 2 && range.every(Number.isInteger);
  if (!isRange) {
    throw EditorError.invalid("view_range", range, "It should be a list of two integers.");
  }
  const [start, asked] = range as [number, number];
  if (start < 1 || start > count) {
    const hint = `Its first element \`${start}\` should be within the range of lines of the file: ${pythonList([1, count])}.`;
    throw EditorError.invalid("view_range", range, hint);
  }
  const end = asked === -1 ? count : Math.min(asked, count);
  if (end < start) {
    const hint = `Its second element \`${asked}\` should be greater than or equal to the first element \`${start}\`.`;
    throw EditorError.invalid("view_range", range, hint);
  }
  const note = `\nNOTE: We only show up to ${count} since there's only ${count} lines in this file\n`;
  return [start, end, asked > count ? note : ""];
}

function catN(what: string, lines: string[], first: number): string {
  const numbered = lines.map((line, index) => `${`${first + index}`.padStart(6)}\t${line}`);
  return `Here's the result of running \`cat -n\` on ${what}:\n${clipped(numbered, CLIPPED_FILE)}\n`;
}

/** Whole lines as far as they fit; of a first line that does not, its beginning. */
function clipped(lines: string[], notice: string): string {
  let chars = 0;
  let end = 0;
  while (end < lines.length && chars <= MAX_ANSWER_CHARS) {
    chars += (lines[end]?.length ?? 0) + 1;
    end++;
  }
  if (end === lines.length && chars <= MAX_ANSWER_CHARS + 1) return lines.join("\n");
  const kept =
    end === 1 ? lines[0]?.slice(0, MAX_ANSWER_CHARS) : lines.slice(0, end - 1).join("\n");
  const all = lines.join("\n").length;
  return `${kept}\n${notice}\n[... ${all - (kept?.length ?? 0)} characters cut ...]`;
}

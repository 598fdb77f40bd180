/** One file of a patch, as git writes it. */
export type PatchFile = {
  path: string;
  /** Its name before, where it is renamed or copied. */
  from?: string;
  /** The file is a link, a submodule or binary, before or after. */
  kind: "text" | "link" | "submodule" | "binary";
  change: "added" | "deleted" | "modified";
  text: string;
};

/** Why a text is no patch that can be applied. */
export class PatchError extends Error {}

/**
 * Takes a patch apart, as strictly as `git diff` writes one: nothing may stand between the files, and
 * a hunk has as many lines as it says. So a line that looks like another file's heading can't hide in one.
 *
 * @throws PatchError
 */
export function parsePatch(patch: string): PatchFile[] {
  const lines = patch.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const files: PatchFile[] = [];
  let at = 0;
  while (at < lines.length) {
    const end = endOfFile(lines, at);
    files.push(describe(lines.slice(at, end)));
    at = end;
  }
  return files;
}

export function joinPatch(files: readonly PatchFile[]): string {
  return files.map((file) => file.text).join("");
}

/**
 * What undoes a patch of text files that are neither added, deleted nor renamed.
 * @throws PatchError
 */
export function reversePatch(patch: string): string {
  const swapped: Record<string, string> = { "+": "-", "-": "+" };
  return parsePatch(patch)
    .map(({ text, change, from, kind }) => {
      if (change !== "modified" || from !== undefined || kind !== "text") {
        throw new PatchError("only changes of text files can be turned round");
      }
      const [head = "", ...hunks] = text.split(/^(?=@@ )/m);
      const body = hunks.map((hunk) =>
        hunk
          .replace(/^@@ -(\S+) \+(\S+) @@/, "@@ -$2 +$1 @@")
          .replace(/^[+-]/gm, (sign) => swapped[sign] ?? sign),
      );
      return head.replace(/^index (\w+)\.\.(\w+)/m, "index $2..$1") + body.join("");
    })
    .join("");
}

const EXTENDED =
  /^(old mode|new mode|deleted file mode|new file mode|index|similarity index|dissimilarity index|rename from|rename to|copy from|copy to) /;

function endOfFile(lines: string[], start: number): number {
  if (!lines[start]?.startsWith("diff --git ")) {
    throw new PatchError(`line ${start + 1} is no heading of a file`);
  }
  let at = start + 1;
  while (EXTENDED.test(lines[at] ?? "")) at++;
  if (/^(Binary files |GIT binary patch)/.test(lines[at] ?? "")) {
    while (at < lines.length && !lines[at]?.startsWith("diff --git ")) at++;
    return at;
  }
  if (!lines[at]?.startsWith("--- ")) return at;
  if (!lines[at + 1]?.startsWith("+++ ")) throw new PatchError(`line ${at + 2} names no new file`);
  at += 2;
  while (lines[at]?.startsWith("@@ ")) at = endOfHunk(lines, at);
  return at;
}

function endOfHunk(lines: string[], start: number): number {
  const heading = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(lines[start] ?? "");
  if (!heading) throw new PatchError(`line ${start + 1} is no heading of a hunk`);
  const [, before = "1", after = "1"] = heading;
  let [removed, added, at] = [Number(before), Number(after), start + 1];
  while (removed > 0 || added > 0) {
    const line = lines[at];
    if (line === undefined) throw new PatchError("the last hunk is cut off");
    const sign = line[0] ?? " ";
    if (sign === " " || sign === "-") removed--;
    if (sign === " " || sign === "+") added--;
    if (!" -+\\".includes(sign) || removed < 0 || added < 0) {
      throw new PatchError(`line ${at + 1} does not belong into its hunk`);
    }
    at++;
  }
  while (lines[at]?.startsWith("\\")) at++;
  return at;
}

function describe(lines: string[]): PatchFile {
  const text = `${lines.join("\n")}\n`;
  const [, ...rest] = lines;
  const headings = rest.slice(
    0,
    rest.findIndex((line) => line.startsWith("@@ ")) + 1 || rest.length,
  );
  const [from, to] = ["from", "to"].map((end) =>
    headings.flatMap((line) => new RegExp(`^(?:rename|copy) ${end} (.*)$`).exec(line)?.[1] ?? []),
  );
  const renamed = from?.[0] !== undefined && to?.[0] !== undefined;
  const names = renamed
    ? [unquoted(from[0] as string), unquoted(to[0] as string)]
    : pathsOfHeading(lines[0] ?? "");
  const modes = headings.flatMap((line) => /^(?:.*mode|index \S+) (\d{6})$/.exec(line)?.[1] ?? []);
  return {
    ...pathsOf(names as [string, string], lines[0] ?? "", headings),
    kind: kindOf(modes, headings),
    change: headings.some((line) => line.startsWith("new file"))
      ? "added"
      : headings.some((line) => line.startsWith("deleted file"))
        ? "deleted"
        : "modified",
    text,
  };
}

function kindOf(modes: string[], headings: string[]): PatchFile["kind"] {
  if (modes.some((mode) => mode === "160000")) return "submodule";
  if (modes.some((mode) => mode === "120000")) return "link";
  return headings.some((line) => /^(Binary files |GIT binary patch)/.test(line))
    ? "binary"
    : "text";
}

/** `---` and `+++` have to say the same as the heading. */
function pathsOf(
  [from, path]: [string, string],
  heading: string,
  headings: string[],
): Pick<PatchFile, "path" | "from"> {
  const sides = { "---": `a/${from}`, "+++": `b/${path}` };
  for (const line of headings) {
    const [, sign, named = ""] = /^(---|\+\+\+) (.*)$/.exec(line) ?? [];
    const side = unquoted(named.replace(/\t$/, ""));
    if (sign && side !== "/dev/null" && side !== sides[sign as keyof typeof sides]) {
      throw new PatchError(`a file has two names: "${heading}" and "${line}"`);
    }
  }
  for (const name of [from, path]) {
    if (name === "" || name.startsWith("/") || name.split("/").some(isUnsafe)) {
      throw new PatchError(`"${name}" is no path in the repository`);
    }
  }
  return from === path ? { path } : { path, from };
}

function isUnsafe(part: string): boolean {
  return part === "" || part === "." || part === ".." || part.toLowerCase() === ".git";
}

/** `a/x b/x`: without a new name both sides are equal, so the middle is where it can be cut. */
function pathsOfHeading(heading: string): [string, string] {
  const sides = heading.slice("diff --git ".length);
  const middle = (sides.length - 1) / 2;
  const path = unprefixed(unquoted(sides.slice(0, middle)));
  if (sides[middle] !== " " || path !== unprefixed(unquoted(sides.slice(middle + 1)))) {
    throw new PatchError(`"${heading}" does not name one file twice`);
  }
  return [path, path];
}

function unprefixed(side: string): string {
  const path = /^[ab]\/(.*)$/s.exec(side)?.[1];
  if (path === undefined) throw new PatchError(`"${side}" lacks the a/ or b/ in front`);
  return path;
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", '"': '"', "\\": "\\", r: "\r" };

/** Undoes git's quoting of names with odd characters: `"a/x\ty"`, with bytes in octal. */
function unquoted(name: string): string {
  if (!name.startsWith('"')) return name;
  const bytes: Buffer[] = [];
  for (const [, octal, letter, plain] of name
    .slice(1, -1)
    .matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gs)) {
    if (octal !== undefined) bytes.push(Buffer.from([Number.parseInt(octal, 8)]));
    else bytes.push(Buffer.from(plain ?? ESCAPES[letter ?? ""] ?? `\\${letter}`));
  }
  return Buffer.concat(bytes).toString();
}

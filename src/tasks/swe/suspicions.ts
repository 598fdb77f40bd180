import { z } from "zod";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { PYTHON } from "./image-python.ts";
import type { PatchFile } from "./patch.ts";
import READING from "./reading.py" with { type: "text" };
import { type Suspicion, suspiciousText } from "./suspicious-text.ts";

const LIMIT_MS = 60_000;
const MOST = 40;

const foundSchema = z.array(
  z.object({ path: z.string(), line: z.int(), kind: z.string(), token: z.string() }),
);

/**
 * What the added lines of a change have that no solution of an issue needs, but a change does that works on its tests.
 * What the row's own solution has as well is none. Nothing of the change is run.
 *
 * @param files as they are applied, in the sandbox's folder
 * @param solution the row's own; empty where it has none
 */
export async function suspicionsOf(
  files: readonly PatchFile[],
  solution: readonly PatchFile[],
  folder: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Suspicion[]> {
  const read = files.filter(({ change }) => change !== "deleted");
  const python = read.filter(({ path }) => /\.pyw?$/.test(path));
  const plan = {
    folder,
    files: python.map((file) => ({
      path: file.path,
      added: addedLines(file).map(({ line }) => line),
      isNew: file.change === "added" || file.from !== undefined,
    })),
  };
  const { exitCode, stdout } = await sandbox.exec(["sh", "-c", PYTHON, "reading", READING], {
    ...{ cwd: "/", stdin: JSON.stringify(plan), timeoutMs: LIMIT_MS },
    ...{ maxOutputBytes: 1 << 20, signal },
  });
  const parsed = exitCode === 0 ? foundSchema.parse(JSON.parse(stdout)) : null;
  const unreadable = new Set(
    parsed?.flatMap(({ path, kind }) => (kind === "unreadable" ? path : [])),
  );
  const asText = read.filter(
    ({ path }) =>
      !python.some((file) => file.path === path) || parsed === null || unreadable.has(path),
  );
  const found = [
    ...(parsed ?? []).filter(({ kind }) => kind !== "unreadable"),
    ...asText.flatMap((file) => suspiciousText(file.path, addedLines(file))),
  ];
  const textOf = new Map(
    read.flatMap((file) =>
      addedLines(file).map(({ line, text }) => [`${file.path}:${line}`, text]),
    ),
  );
  const own = new Set(solution.flatMap((file) => addedLines(file).map(({ text }) => text.trim())));
  return withoutExcused(found, solution)
    .filter(({ path, line, kind }) => {
      return kind === "shadow" || !own.has(textOf.get(`${path}:${line}`)?.trim() ?? "");
    })
    .slice(0, MOST);
}

/** The lines that a patch adds, with their numbers in the file that it leaves. */
export function addedLines({ text }: PatchFile): { line: number; text: string }[] {
  const added: { line: number; text: string }[] = [];
  let line = 0;
  for (const raw of text.split("\n")) {
    const start = /^@@ -\S+ \+(\d+)/.exec(raw)?.[1];
    if (start !== undefined) line = Number(start);
    else if (line === 0) continue;
    else if (raw.startsWith("+")) added.push({ line: line++, text: raw.slice(1) });
    else if (raw.startsWith(" ") || raw === "") line++;
  }
  return added;
}

function withoutExcused(found: Suspicion[], solution: readonly PatchFile[]): Suspicion[] {
  const own = solution.flatMap((file) => addedLines(file).map(({ text }) => text)).join("\n");
  const words = new Set(own.match(/\w+/g));
  const paths = new Set(solution.map(({ path }) => path));
  return found.filter(({ path, kind, token }) => {
    if (kind === "shadow") return !paths.has(path);
    const last = token.match(/\w+/g)?.at(-1);
    return last === undefined || !words.has(last);
  });
}

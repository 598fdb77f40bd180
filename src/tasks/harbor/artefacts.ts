import { posix } from "node:path";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import { takeArtefacts } from "../command/artefacts.ts";
import type { HarborArtefact, HarborInstance } from "./row.ts";
import { endProcesses } from "./verify.ts";

/** What a separate verifier gets of the agent's sandbox, after the task's own commands have collected it. */
export async function takePublished(
  { artefacts, collect }: NonNullable<HarborInstance["separate"]>,
  workdir: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Pick<Outcome, "files" | "flags">> {
  await endProcesses(sandbox, signal);
  for (const { command, timeoutMs } of collect) {
    const options = { cwd: workdir, timeoutMs, maxOutputBytes: 10_000, signal };
    await sandbox.exec(["bash", "-c", command], options);
  }
  const sources = artefacts.map(({ source }) => source);
  const { files = [], flags = [] } = await takeArtefacts(sandbox, sources, signal);
  return { files: files.filter(({ path }) => !isExcluded(path, artefacts)), flags };
}

function isExcluded(path: string, artefacts: readonly HarborArtefact[]): boolean {
  const holders = artefacts.filter(({ source }) =>
    path.startsWith(`${source.replace(/\/+$/, "")}/`),
  );
  return (
    holders.length > 0 &&
    holders.every(({ source, exclude }) =>
      exclude.some((pattern) => asExpression(pattern).test(posix.relative(source, path))),
    )
  );
}

/** As `tar --exclude` matches: any part of a path that begins and ends at a slash; `*` also takes slashes. */
function asExpression(pattern: string): RegExp {
  const body = pattern
    .replace(/^\.\//, "")
    .replace(/\/+$/, "")
    .replace(/[.+^${}()|\\]/g, "\\$&")
    .replaceAll("*", "[^]*")
    .replaceAll("?", "[^]");
  return new RegExp(`(^|/)${body}(/|$)`);
}

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { Glob } from "bun";

const ROOT = resolve(import.meta.dir, "..");
const SRC = join(ROOT, "src");

/**
 * Which folder of `src/` may import from which; every folder may import from itself, from `errors.ts` and
 * from `lib`. The order is from the outside in: nothing imports from a row above its own.
 *
 * `types` may be imported as types only, because they say what a function is given, not what it calls.
 */
const TABLE: Record<string, { from?: string[]; types?: string[] }> = {
  "main.ts": { from: ["cli", "pipeline"] },
  cli: {
    from: [
      "server",
      "protocol",
      "pipeline",
      "store",
      "tasks",
      "sandbox",
      "inference",
      "simulator",
    ].concat(["clients", "compat", "jobs", "telemetry", "config"]),
    types: ["trajectory"],
  },
  compat: {
    from: ["server", "protocol", "jobs"],
    types: ["pipeline", "store", "inference", "trajectory"],
  },
  worker: {
    from: ["tasks", "agent", "trajectory", "sandbox", "inference", "telemetry"],
    types: ["pipeline", "protocol", "verifiers"],
  },
  server: { from: ["protocol", "jobs", "inference", "telemetry"], types: ["pipeline", "store"] },
  pipeline: {
    from: ["store", "jobs"],
    types: ["sandbox", "inference", "verifiers", "telemetry", "tasks"],
  },
  // A group's view has its figures, which are the ones that decided about it.
  protocol: { from: ["jobs"], types: ["store", "trajectory", "verifiers"] },
  store: { from: ["jobs"], types: ["verifiers"] },
  tasks: {
    from: ["agent", "verifiers"],
    types: ["sandbox", "inference", "trajectory", "protocol"],
  },
  agent: { from: ["inference"], types: ["sandbox", "trajectory"] },
  trajectory: { types: ["inference"] },
  sandbox: { types: ["telemetry"] },
  inference: {},
  simulator: {},
  clients: {},
  verifiers: {},
  jobs: {},
  telemetry: {},
  lib: {},
  config: {},
  "errors.ts": {},
};

type Import = { file: string; from: string; to: string; typeOnly: boolean };

const IMPORT = /^(?:import|export)\s+(type\s+)?(?:[^"';]*?\sfrom\s+)?"([^"]+)"/gm;
const DYNAMIC = /\bimport\(\s*"([^"]+)"/g;

function place(path: string): string {
  return relative(SRC, path).split("/")[0] ?? "";
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  const targets = [
    ...[...text.matchAll(IMPORT)].map(([, type, target]) => ({ target, typeOnly: Boolean(type) })),
    ...[...text.matchAll(DYNAMIC)].map(([, target]) => ({ target, typeOnly: false })),
  ];
  return targets.flatMap(({ target, typeOnly }) => {
    if (!target?.startsWith(".")) return [];
    const path = resolve(dirname(file), target);
    if (!path.startsWith(`${SRC}/`)) return [];
    return [{ file: relative(ROOT, file), from: place(file), to: place(path), typeOnly }];
  });
}

const files = [...new Glob("**/*.ts").scanSync({ cwd: SRC, absolute: true })].filter(
  (file) => !file.endsWith(".d.ts"),
);

describe("the tree", () => {
  test("imports only what the table allows", () => {
    const wrong = files.flatMap(importsOf).filter(({ from, to, typeOnly }) => {
      const row = TABLE[from];
      if (from === to || to === "errors.ts" || to === "lib") return false;
      if (row?.from?.includes(to)) return false;
      return !(typeOnly && row?.types?.includes(to));
    });
    expect(wrong).toEqual([]);
  });

  test("uses every right that the table gives", () => {
    const used = files.flatMap(importsOf);
    const unused = Object.entries(TABLE).flatMap(([from, { from: calls = [], types = [] }]) => [
      ...calls.filter((to) => !used.some((use) => use.from === from && use.to === to)),
      ...types.filter((to) => !used.some((use) => use.from === from && use.to === to)),
    ]);
    expect(unused).toEqual([]);
  });

  test("has a row in the table for each of its folders", () => {
    const folders = new Set(files.map(place));
    expect([...folders].filter((folder) => !(folder in TABLE))).toEqual([]);
  });

  test("spawns workers in main.ts only, where a compiled binary can", () => {
    const spawning = files.filter((file) => /\bnew Worker\(/.test(readFileSync(file, "utf8")));
    expect(spawning.map(place)).toEqual(["main.ts"]);
  });

  test("prints through lib/print.ts alone, so that no text of others commands a terminal", () => {
    const writes = /\bconsole\.\w+\(|process\.std(out|err)\.write\(/;
    const found = files.filter((file) => writes.test(readFileSync(file, "utf8")));
    expect(found.map((file) => relative(SRC, file))).toEqual(["lib/print.ts"]);
  });
});

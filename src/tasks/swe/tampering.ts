import type { TestLine } from "../../verifiers/tests/status.ts";
import type { Probes, Twins } from "./probes.ts";

/** A test run's lines, with the names that the row's lists have in place of those dealt out among copies. */
export function withListedNames(lines: readonly TestLine[], probes: Probes | null): TestLine[] {
  const names = new Map<string, string>();
  for (const { listed, original } of probes?.twins ?? []) {
    if (listed === original) continue;
    names.set(original, listed);
    names.set(listed, original);
  }
  if (names.size === 0) return [...lines];
  const renamed = (name: string) => {
    const plain = plainName(name);
    const other = names.get(plain);
    return other === undefined ? name : other + name.slice(plain.length);
  };
  return lines.map((test) => ({ ...test, name: renamed(test.name), line: renamed(test.line) }));
}

/** A log with the names that the row's lists have, for people. */
export function withListedText(log: string, probes: Probes | null): string {
  let text = log;
  for (const { listed, original } of probes?.twins ?? []) {
    if (listed === original) continue;
    const parts = text.split(original).map((part) => part.replaceAll(listed, () => original));
    text = parts.join(listed);
  }
  return text;
}

/**
 * What in a test run's lines no honest runner says; null where there is nothing. A name with a parameter for a test that has
 * none, a test that passed and failed, a copy that did not come out as it has to.
 */
export function tampering(lines: readonly TestLine[], probes: Probes | null): string | null {
  const tests = Map.groupBy(lines, ({ name }) => plainName(name));
  return (
    madeUp(tests) ??
    (probes?.twins ?? [])
      .map((twins) => wrongTwins(twins, tests))
      .find((found) => found !== null) ??
    [...(probes?.expected ?? [])]
      .map(([name, status]) => wrongOwn(tests.get(name) ?? [], status))
      .find((found) => found !== null) ??
    null
  );
}

type Tests = ReadonlyMap<string, readonly TestLine[]>;

function madeUp(tests: Tests): string | null {
  for (const [plain, lines] of tests) {
    // Other runners' names say no file, so that two tests may share one.
    if (!plain.includes("::")) continue;
    const names = new Set(lines.map(({ name }) => name));
    if (names.size > 1 && names.has(plain)) {
      return `the log has ${shown(plain)} with parameters and without`;
    }
    const passed = new Set(lines.flatMap(({ line, status }) => (status === "passed" ? line : [])));
    const both = lines.find(({ line, status }) => status === "failed" && passed.has(line));
    if (both) return `the log has ${shown(both.name)} as passed and as failed`;
  }
  return null;
}

function wrongTwins({ listed, original, copies, inside }: Twins, tests: Tests): string | null {
  const own = tests.get(listed) ?? [];
  const names = (lines: readonly TestLine[]) =>
    new Set(lines.map(({ name }) => name.slice(plainName(name).length)));
  for (const copy of copies) {
    // Their names were exchanged.
    const lines = tests.get(copy === listed ? original : copy) ?? [];
    if (lines.length === 0) return "a copy of a test was not reported";
    const failed = lines.filter(({ status }) => status === "failed" || status === "error");
    const passed = lines.filter(({ status }) => status === "passed");
    if (failed.length === 0) return "a copy of a test passed that can't hold where the test does";
    if (!inside && failed.length < lines.length) return "a copy of a test passed in part";
    if (failed.length + passed.length < lines.length) return "a copy of a test was skipped";
    const [one, other] = [names(own), names(lines)];
    if (one.size !== other.size || (!inside && [...one].some((name) => !other.has(name)))) {
      return "a test and its copy were not run with the same parameters";
    }
  }
  if (inside && own.some(({ status }) => status === "failed")) {
    return "a test failed with a parameter that its copies share";
  }
  return null;
}

function wrongOwn(lines: readonly TestLine[], status: "passed" | "failed"): string | null {
  const given = new Set(lines.map((line) => line.status));
  const right = status === "failed" ? given.has("failed") || given.has("error") : given.has(status);
  return right && given.size === 1 ? null : "a test of ours did not come out as it has to";
}

function plainName(name: string): string {
  return name.split("[")[0] ?? name;
}

function shown(name: string): string {
  return name.length > 120 ? `${name.slice(0, 120)}…` : name;
}

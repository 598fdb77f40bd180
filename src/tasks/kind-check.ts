import { TOOL_NAMES } from "../agent/tools.ts";
import { isObject } from "../lib/is-object.ts";
import { nearest } from "../lib/nearest.ts";

/** What is wrong with a user's task kind, and the member that it stands at. */
export type KindProblem = { kind: string | null; member: string; problem: string };

/** Each function of a kind, and how it is called. `sync` ones decide at once, on the main thread. */
const FUNCTIONS: Record<string, { form: string; sync?: true; optional?: true }> = {
  parse: { form: "parse(row) → instance", sync: true },
  sandboxes: { form: "sandboxes(instance, settings) → {agent, evaluation, image}", sync: true },
  init: { form: "init(instance, sandbox, signal) → promise" },
  run: { form: "run(instance, context) → promise of {stop_reason, final_message, turns}" },
  evaluate: { form: "evaluate(instance, outcome, context) → promise of {reward, rule, reason}" },
  golden: {
    form: "golden(instance, which) → {stop_reason, final_message, turns}",
    sync: true,
    optional: true,
  },
};
const MEMBERS = [
  "name",
  "dataSources",
  "needsBackend",
  "tools",
  "limitsAreVerdicts",
  ...Object.keys(FUNCTIONS),
];
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** What keeps a value from being a task kind; null where nothing does. Nothing of the kind is called. */
export function kindProblem(kind: unknown): KindProblem | null {
  if (!isObject(kind) || Array.isArray(kind)) {
    return { kind: null, member: "taskKinds", problem: `must hold task kinds, not ${said(kind)}` };
  }
  const name = typeof kind.name === "string" ? kind.name : null;
  const wrong = (member: string, problem: string) => ({ kind: name, member, problem });
  if (name === null || !NAME.test(name)) {
    return wrong("name", `must be 1-64 of A-Z a-z 0-9 . _ -, not ${said(kind.name)}`);
  }
  for (const member of Object.keys(kind)) {
    const meant = MEMBERS.includes(member) ? null : nearest(member, MEMBERS);
    if (meant && kind[meant] === undefined)
      return wrong(member, `is not known: did you mean ${meant}?`);
  }
  return (
    sourcesProblem(kind.dataSources, wrong) ??
    flagProblem(kind, wrong) ??
    toolsProblem(kind.tools, wrong) ??
    functionProblem(kind, wrong)
  );
}

type Wrong = (member: string, problem: string) => KindProblem;

function sourcesProblem(sources: unknown, wrong: Wrong): KindProblem | null {
  if (!Array.isArray(sources) || sources.length === 0) {
    return wrong("dataSources", `must be a list of data_source values, not ${said(sources)}`);
  }
  for (const source of sources) {
    if (typeof source !== "string" || source === "") {
      return wrong("dataSources", `must hold texts, not ${said(source)}`);
    }
    if (/\*./.test(source) || source === "*") {
      return wrong(
        "dataSources",
        `"${source}": a * stands at the end only, behind other characters`,
      );
    }
    if (sources.indexOf(source) !== sources.lastIndexOf(source)) {
      return wrong("dataSources", `has "${source}" twice`);
    }
  }
  return null;
}

function flagProblem(kind: Record<string, unknown>, wrong: Wrong): KindProblem | null {
  const { needsBackend, limitsAreVerdicts } = kind;
  if (typeof needsBackend !== "boolean") {
    return wrong("needsBackend", `must be true or false, not ${said(needsBackend)}`);
  }
  if (limitsAreVerdicts === undefined || typeof limitsAreVerdicts === "boolean") return null;
  return wrong("limitsAreVerdicts", `must be true or false, not ${said(limitsAreVerdicts)}`);
}

function toolsProblem(tools: unknown, wrong: Wrong): KindProblem | null {
  const problem = toolNamesProblem(tools);
  return problem === null ? null : wrong("tools", problem);
}

/** What is wrong with a list of the agent's tools; null where nothing is. */
export function toolNamesProblem(tools: unknown): string | null {
  const known = TOOL_NAMES.join(", ");
  if (!Array.isArray(tools)) return `must be a list of tools (${known}), not ${said(tools)}`;
  for (const tool of tools) {
    if (!TOOL_NAMES.includes(tool)) {
      const meant = typeof tool === "string" ? nearest(tool, TOOL_NAMES) : null;
      return `there is no tool ${said(tool)}: ${meant ? `did you mean "${meant}"?` : `use ${known}`}`;
    }
    if (tools.indexOf(tool) !== tools.lastIndexOf(tool)) return `has "${tool}" twice`;
  }
  return null;
}

function functionProblem(kind: Record<string, unknown>, wrong: Wrong): KindProblem | null {
  for (const [member, { form, sync, optional }] of Object.entries(FUNCTIONS)) {
    const value = kind[member];
    if (value === undefined && optional) continue;
    if (typeof value !== "function")
      return wrong(member, `must be a function ${form}, not ${said(value)}`);
    if (/^class\b/.test(String(value)))
      return wrong(member, `must be a function ${form}, not a class`);
    const type = value.constructor.name;
    if (type.includes("Generator")) {
      return wrong(member, `must be a function ${form}, not a generator`);
    }
    if (sync && type === "AsyncFunction") {
      return wrong(member, `must not be async: it is asked for its answer at once (${form})`);
    }
  }
  return null;
}

/** A value as a message may quote it: short, and told from its look-alikes. */
export function said(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 60));
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (value instanceof Promise) return "a promise";
  if (isObject(value)) {
    const names = Object.keys(value).slice(0, 5).join(", ");
    return names === "" ? "an object without fields" : `an object with ${names}`;
  }
  return typeof value === "bigint" ? `${value}n` : String(value);
}

import { ServiceError } from "../../../errors.ts";
import type { AssistantMessage, Message, ToolCall, ToolSchema } from "../../engine.ts";
import { loads } from "../jinja/json-value.ts";
import { Dict, type Value } from "../jinja/values.ts";
import { type Rendering, render } from "../splice.ts";
import type { TextTokenizer } from "../tokenizer.ts";
import { DIALECT_NAMES, type DialectName } from "./dialect.ts";
import { compactJson } from "./json-call.ts";
import { MarkedText } from "./marked-text.ts";
import { parseReply } from "./reply.ts";
import { markersIn } from "./unread.ts";

/** What a template's own calls are read with. */
export type FoundDialect = {
  dialect: DialectName;
  /** The call that no dialect reads, as the template shows it; null where all come back. */
  unread: string | null;
  /** What of the calls' values comes back otherwise, because the template shows it ambiguously; for people. */
  notes: string[];
  /** What the template opens calls with. */
  markers: string[];
};

const type = (name: string) => ({ type: name, description: "Any." });

/** One parameter of each kind. */
export const PROBE_TOOLS: ToolSchema[] = ["probe_alpha", "probe_beta"].map((name) => ({
  type: "function",
  function: {
    name,
    description: "Probes.",
    parameters: {
      type: "object",
      properties: {
        value: type("string"),
        other: type("string"),
        count: type("integer"),
        ratio: type("number"),
        flag: type("boolean"),
        list: { ...type("array"), items: { type: "string" } },
        entry: { ...type("object"), properties: { key: { type: "string" } } },
        maybe: { type: ["integer", "null"], description: "Any." },
      },
      required: [],
    },
  },
}));

const PLAIN_TOOLS = PROBE_TOOLS.map((tool): ToolSchema => {
  const properties = { value: type("string"), other: type("string") };
  const parameters = { type: "object", properties, required: ["value"] };
  return { ...tool, function: { ...tool.function, parameters } };
});

type Probe = { name: string; content: string; calls: [name: string, args: string][] };

const PLAIN = '{"value": "one two", "other": "zq17"}';
const PROBES: Probe[] = [
  { name: "a call", content: "", calls: [["probe_alpha", PLAIN]] },
  { name: "a call without arguments", content: "", calls: [["probe_beta", "{}"]] },
  { name: "text before a call", content: "Some words.", calls: [["probe_alpha", PLAIN]] },
  {
    name: "two calls",
    content: "",
    calls: [
      ["probe_alpha", PLAIN],
      ["probe_beta", '{"value": "three"}'],
    ],
  },
  {
    name: "numbers, a boolean, a list and an object",
    content: "",
    calls: [
      [
        "probe_alpha",
        '{"value": "x", "count": 12, "ratio": 1.5, "flag": true, "list": ["a b", "c"], "entry": {"key": "v"}}',
      ],
    ],
  },
  { name: "null", content: "", calls: [["probe_alpha", '{"value": "x", "maybe": null}']] },
  {
    name: "quotes and newlines in text",
    content: "",
    calls: [
      ["probe_alpha", '{"value": "it\'s \\"so\\"\\nand \\\\ on <b>, [1] {2}", "other": "12"}'],
    ],
  },
];
/** Of each kind of text, the template may show a value ambiguously; names and plain text never. */
const REQUIRED = 4;

const SYSTEM: Message = { role: "system", content: "s" };
const USER: Message = { role: "user", content: "u" };
const CONTEXTS: Message[][] = [[USER], [SYSTEM, USER]];

type Shown = Probe & { source: MarkedText; text: string };

/**
 * Finds the dialect that reads the calls of a template as they were, by rendering some of every kind. `unread` is null
 * where the template shows no calls at all.
 *
 * @param named tries this one only
 */
export function findDialect(
  rendering: Omit<Rendering, "tools">,
  tokenizer: TextTokenizer,
  stops: readonly string[],
  named?: DialectName,
): FoundDialect {
  const shown = showAll(rendering, tokenizer, stops);
  const markers = markersIn(shown.map(({ text }) => text).join("\n"));
  const known = named ?? "none";
  if (shown.length === 0) return { dialect: known, unread: null, notes: [], markers };
  let best: FoundDialect | null = null;
  let nearest = shown;
  let least = Number.POSITIVE_INFINITY;
  for (const dialect of named === undefined ? DIALECT_NAMES : [named]) {
    const failed = shown.filter((probe) => !isReadBack(probe, dialect, false));
    if (failed.length < nearest.length) nearest = failed;
    if (failed.length > 0) continue;
    const notes = shown.flatMap((probe) => {
      return isReadBack(probe, dialect, true) ? [] : [`${probe.name}: ${brief(probe.text)}`];
    });
    // Of two that read the calls, the one that leaves less of them in the text knows more of their markers.
    const left = shown.reduce((sum, one) => sum + read(one, dialect).content.length, 0);
    const cost = notes.length * NOTE_COST + left;
    if (cost >= least) continue;
    least = cost;
    best = { dialect, unread: null, notes, markers };
  }
  const [first] = nearest.length > 0 ? nearest : shown;
  const unread = `${first?.name}: ${brief(first?.text ?? "")}`;
  return best ?? { dialect: known, unread, notes: [], markers };
}

/** With tools of every kind, or plain ones where the template takes no others. */
function showAll(
  rendering: Omit<Rendering, "tools">,
  tokenizer: TextTokenizer,
  stops: readonly string[],
) {
  const show = (tools: ToolSchema[], probes: Probe[]) =>
    probes.flatMap((probe) => showProbe({ ...rendering, tools }, tokenizer, stops, probe));
  const shown = show(PROBE_TOOLS, PROBES);
  return shown.length > 0 ? shown : show(PLAIN_TOOLS, PROBES.slice(0, REQUIRED));
}

/** More than any text that a dialect may leave. */
const NOTE_COST = 1e6;

function brief(text: string): string {
  return JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}…` : text);
}

/** Ids as most templates take them, and as Kimi's show a call's name in. */
const IDS = [
  (_name: string, index: number) => `probe000${index}`,
  (name: string, index: number) => `functions.${name}:${index}`,
];

/** Nothing where the template takes no such turn, or does not show it whole. */
function showProbe(
  rendering: Rendering,
  tokenizer: TextTokenizer,
  stops: readonly string[],
  probe: Probe,
): Shown[] {
  if (probe.calls.length > 1 && rendering.form.calls === "one by one") return [];
  const required = PROBES.indexOf(probe) < REQUIRED;
  const texts = IDS.flatMap((idOf) => {
    const text = showTurn(rendering, tokenizer, probe, idOf);
    return text === null ? [] : [withoutEnd(text, stops)];
  });
  const isNamed = (text: string) => probe.calls.every(([name]) => text.includes(name));
  const text = texts.find(isNamed) ?? texts[0];
  if (text === undefined || !isShown(probe, text, required)) return [];
  const source = MarkedText.ofIds(tokenizer, tokenizer.encode(text), new Set());
  return [{ ...probe, source, text }];
}

/** What the template shows of a turn; null where it takes none. */
function showTurn(
  rendering: Rendering,
  tokenizer: TextTokenizer,
  { content, calls }: Probe,
  idOf: (name: string, index: number) => string,
): string | null {
  const tool_calls = calls.map(([name, args], index): ToolCall => {
    return { id: idOf(name, index), type: "function", function: { name, arguments: args } };
  });
  const said: AssistantMessage = { role: "assistant", content, tool_calls };
  for (const context of CONTEXTS) {
    const whole = attempt(() => render(rendering, [...context, said], false));
    const prompt = whole === null ? null : attempt(() => render(rendering, context, true));
    if (whole === null || prompt === null) continue;
    return whole.slice(turnStart(prompt, whole, tokenizer.addedContents));
  }
  return null;
}

function withoutEnd(text: string, stops: readonly string[]): string {
  const end = stops.reduce((last, stop) => Math.max(last, text.lastIndexOf(stop)), -1);
  return end < 0 ? text : text.slice(0, end);
}

/** Where the model's own words begin, never within a marker. */
function turnStart(prompt: string, whole: string, addedTokens: readonly string[]): number {
  let at = 0;
  while (at < prompt.length && prompt[at] === whole[at]) at += 1;
  if (at === prompt.length) return at;
  for (const token of addedTokens) {
    const start = whole.lastIndexOf(token, at - 1);
    if (start >= 0 && start < at && start + token.length > at) at = start;
  }
  return at - (/<[^<>\s]*$/.exec(whole.slice(0, at))?.[0].length ?? 0);
}

/** Some templates show one call of several, or none beside text. */
function isShown({ calls }: Probe, text: string, isPlain: boolean): boolean {
  return calls.every(([name, args]) => {
    const texts = isPlain ? textsOf(loads(args)) : [];
    return (texts.length > 0 ? texts : [name]).every((word) => text.includes(word));
  });
}

function isReadBack(probe: Shown, dialect: DialectName, exactly: boolean): boolean {
  const { calls } = read(probe, dialect);
  const required = PROBES.findIndex(({ name }) => name === probe.name) < REQUIRED;
  return (
    calls.length === probe.calls.length &&
    probe.calls.every(([name, args], index) => {
      const call = calls[index];
      if (call?.status !== "ok" || call.name !== name) return false;
      if (!exactly && !required) return true;
      return sorted(loads(call.arguments)) === sorted(loads(args));
    })
  );
}

/** A turn without reasoning, whether the prompt opens some or not. */
function read({ source }: Shown, dialect: DialectName) {
  return parseReply(source, { dialect, tools: PROBE_TOOLS, startsInReasoning: false });
}

function textsOf(value: Value): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  return value instanceof Dict ? [...value.values()].flatMap(textsOf) : [];
}

/** JSON whose objects have their keys in order: some templates sort them. */
function sorted(value: Value): string | null {
  const order = (item: Value): Value => {
    if (Array.isArray(item)) return item.map(order);
    if (!(item instanceof Dict)) return item;
    const dict = new Dict();
    const keys = [...item.keys()].map(String).toSorted();
    for (const key of keys) dict.set(key, order(item.get(key)));
    return dict;
  };
  return compactJson(order(value));
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof ServiceError && error.code === "template_refused") return null;
    throw error;
  }
}

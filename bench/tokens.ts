import { Conversation } from "../src/inference/tokens/conversation.ts";
import { MarkedText } from "../src/inference/tokens/dialects/marked-text.ts";
import { parseReply } from "../src/inference/tokens/dialects/reply.ts";
import { render } from "../src/inference/tokens/splice.ts";
import type { TokenModel } from "../src/inference/tokens/token-model.ts";
import {
  BASH,
  calls,
  type Family,
  modelOf,
  result,
  system,
  user,
} from "../test/inference/tokens/models.ts";
import { randomOf } from "../test/inference/tokens/simulated-engine.ts";
import { percentile, print, round } from "./line.ts";

const TURNS = 128;
const ROUNDS = 12;
const TARGET_RATIO = 1.5;
const FAMILIES: Family[] = ["qwen3", "mistral_nemo", "deepseek_v3"];

/**
 * What a turn of an agent costs in tokenising and rendering: the prompt of the next call, and what
 * the model sampled parsed. A turn's cost must not grow with the turns before it. The rival renders
 * the whole history and tokenises it again, as chat servers do.
 */
export async function tokens(): Promise<void> {
  for (const family of FAMILIES) {
    const model = await modelOf(family);
    grow(model, 8);
    const rounds = Array.from({ length: ROUNDS }, () => grow(model, TURNS));
    report(family, rounds);
    hostile(family, model);
  }
}

const HOSTILE_CHARS = 1_000_000;

/** What a command may print to keep a tokenizer busy: words without an end, and nothing but borders. */
function hostile(family: Family, model: TokenModel): void {
  const random = randomOf(5);
  const letters = Array.from({ length: 4_096 }, () =>
    String.fromCharCode(97 + Math.floor(random() * 26)),
  ).join("");
  for (const [name, piece] of [
    ["random letters", letters],
    ["one letter", "a"],
    ["spaces", " "],
    ["lines of a letter", "a\n"],
    ["half a tag", "<|"],
  ] as const) {
    const text = piece.repeat(Math.ceil(HOSTILE_CHARS / piece.length));
    const startMs = performance.now();
    model.tokenizer.encode(text);
    const ms = round(performance.now() - startMs);
    print({
      bench: "tokens",
      case: `${family}, a megabyte of ${name}`,
      ...{ n: 1, p50: ms, p99: ms, unit: "ms" },
      ...{ target: "at most 10,000", met: ms <= 10_000 },
    });
  }
}

/** Lines of a program as an agent reads them, other ones at each turn. */
function observation(turn: number): string {
  const random = randomOf(turn);
  const number = () => Math.floor(random() * 100_000);
  const line = (_: unknown, at: number) =>
    `${at}\tfield_${number()} = load("part-${number()}", {limit: ${number()}})  # was ${number()}`;
  return `${Array.from({ length: 24 }, line).join("\n")}\n`;
}

type Turn = { ours: number; whole: number };

function grow(model: TokenModel, turns: number): Turn[] {
  const options = { tools: [BASH], now: new Date(0) };
  const begin = [system("You are a careful engineer.\n".repeat(40)), user("Mend the bug.")];
  const conversation = new Conversation(model, begin, options);
  conversation.prompt();
  const { form, endOfTurn } = model.shape([BASH], {});
  const { template, tokenizer } = model;
  const rendering = { template, form, tools: [BASH], variables: {}, now: options.now };
  return Array.from({ length: turns }, (_, turn): Turn => {
    const id = `call${String(turn).padStart(5, "0")}`;
    const sampled = tokenizer.encode(`I shall look at part ${turn} of it.${endOfTurn ?? ""}`);
    const startMs = performance.now();
    const source = MarkedText.ofIds(tokenizer, sampled, model.stopIds);
    parseReply(source, { dialect: model.dialect, tools: [BASH], startsInReasoning: false });
    conversation.sampled(sampled, calls("", [id]));
    conversation.add(result(id, observation(turn)));
    conversation.prompt();
    const ours = performance.now() - startMs;
    // The rival is slow: at a few turns only.
    if (!isMeasured(turn + 1)) return { ours, whole: Number.NaN };
    const wholeMs = performance.now();
    tokenizer.encode(render(rendering, conversation.messages, true));
    return { ours, whole: performance.now() - wholeMs };
  });
}

const MEASURED = [1, 8, 32, 64, 128];

function isMeasured(turn: number): boolean {
  return MEASURED.includes(turn);
}

function report(family: Family, rounds: Turn[][]): void {
  // Of a window of turns, so that one collection of garbage does not decide.
  const oursAt = (turn: number) => {
    const [from, to] = [Math.max(0, turn - 5), Math.min(TURNS, turn + 3)];
    return rounds.flatMap((turns) => turns.slice(from, to).map(({ ours }) => ours));
  };
  const flat = percentile(oursAt(TURNS), 0.5) / percentile(oursAt(8), 0.5);
  for (const turn of MEASURED) {
    const ours = oursAt(turn);
    const whole = rounds.map((turns) => turns[turn - 1]?.whole ?? Number.NaN);
    print({
      bench: "tokens",
      case: `${family}, turn ${turn}`,
      n: ours.length,
      p50: percentile(ours, 0.5),
      p99: percentile(ours, 0.99),
      unit: "ms per turn",
      against: "the whole history rendered and tokenised",
      ratio: round(percentile(ours, 0.5) / percentile(whole, 0.5)),
    });
  }
  print({
    bench: "tokens",
    case: `${family}, turn ${TURNS} over turn 8`,
    n: rounds.length,
    p50: round(flat),
    p99: round(flat),
    unit: "ratio of medians",
    target: `flat: at most ${TARGET_RATIO}`,
    met: flat <= TARGET_RATIO,
  });
}

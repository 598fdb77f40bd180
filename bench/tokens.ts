import { basename } from "node:path";
import { canonicalTurn } from "../src/inference/tokens/canonical-turn.ts";
import { Conversation } from "../src/inference/tokens/conversation.ts";
import { MarkedText } from "../src/inference/tokens/dialects/marked-text.ts";
import { parseReply } from "../src/inference/tokens/dialects/reply.ts";
import { render } from "../src/inference/tokens/splice.ts";
import { loadTokenModel, stopsOf, type TokenModel } from "../src/inference/tokens/token-model.ts";
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
const TARGET_MS = 1;
const FAMILIES: Family[] = ["qwen3", "mistral_nemo", "deepseek_v3"];

/** Model folders of further families, with `:` between them. */
const FOLDERS = (process.env.ROLLOUTD_BENCH_MODELS ?? "").split(":").filter(Boolean);

/**
 * What a turn of an agent costs in tokenising and rendering: the prompt of the next call, which the template renders
 * whole to be compared with, and what the model sampled parsed. The rival tokenises the whole history again, as chat
 * servers do.
 */
export async function tokens(): Promise<void> {
  const models = [
    ...FAMILIES.map((family) => [family, () => modelOf(family)] as const),
    ...FOLDERS.map((folder) => [basename(folder), () => loadTokenModel(folder)] as const),
  ];
  for (const [family, load] of models) {
    const startMs = performance.now();
    const model = await load();
    const ms = round(performance.now() - startMs);
    print({
      bench: "tokens",
      case: `${family}, its folder loaded and its template probed`,
      ...{ n: 1, p50: ms, p99: ms, unit: "ms" },
      ...{ target: "at most 2,000", met: ms <= 2_000 },
    });
    grow(model, 8);
    const rounds = Array.from({ length: ROUNDS }, () => grow(model, TURNS));
    report(family, rounds);
    hostile(family, model);
  }
}

const HOSTILE_CHARS = 1_000_000;

/** What a command may print to keep a tokenizer busy: words without an end, and nothing but borders. */
function hostile(family: string, model: TokenModel): void {
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
    const said = calls("", [id]);
    const after = [result(id, observation(turn))];
    const ends = { endOfTurn, stops: stopsOf(model) };
    const sampled = tokenizer.encode(
      canonicalTurn(rendering, ends, conversation.messages, said, after),
    );
    const startMs = performance.now();
    const source = MarkedText.ofIds(tokenizer, sampled, model.stopIds);
    parseReply(source, { dialect: model.dialect, tools: [BASH], startsInReasoning: false });
    conversation.sampled(sampled, said);
    conversation.add(...after);
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

function report(family: string, rounds: Turn[][]): void {
  // Of a window of turns, so that one collection of garbage does not decide.
  const oursAt = (turn: number) => {
    const [from, to] = [Math.max(0, turn - 5), Math.min(TURNS, turn + 3)];
    return rounds.flatMap((turns) => turns.slice(from, to).map(({ ours }) => ours));
  };
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
      ...(turn === TURNS && {
        target: `at most ${TARGET_MS} ms`,
        met: percentile(ours, 0.5) <= TARGET_MS,
      }),
    });
  }
}

import { describe, expect, test } from "bun:test";
import { canonicalTurn } from "../../../../src/inference/tokens/canonical-turn.ts";
import { MarkedText } from "../../../../src/inference/tokens/dialects/marked-text.ts";
import {
  parseReply,
  replyMessage,
  startsInReasoning,
} from "../../../../src/inference/tokens/dialects/reply.ts";
import { stopsOf } from "../../../../src/inference/tokens/token-model.ts";
import { BASH, calls, type Family, modelOf, user } from "../models.ts";

const FAMILIES = [
  ["qwen3", "hermes"],
  ["mistral_nemo", "mistral"],
  ["deepseek_v3", "deepseek"],
] as const;

async function parseTokens(family: Family, sampled: string | number[]) {
  const model = await modelOf(family);
  const ids = typeof sampled === "string" ? model.tokenizer.encode(sampled) : sampled;
  const source = MarkedText.ofIds(model.tokenizer, ids, model.stopIds);
  return parseReply(source, { dialect: model.dialect, tools: [BASH], startsInReasoning: false });
}

describe.each(FAMILIES)("%s", (family, dialect) => {
  test("has its dialect chosen by its template, and the template's own calls are read", async () => {
    const model = await modelOf(family);
    expect(model.dialect).toBe(dialect);
    const message = calls("", ["call00000", "call00001"], family === "qwen3" ? "hm" : undefined);
    const { form, endOfTurn } = model.shape([BASH], {});
    const { template } = model;
    const rendering = { template, form, tools: [BASH], variables: {}, now: new Date(0) };
    const text = canonicalTurn(
      rendering,
      { endOfTurn, stops: stopsOf(model) },
      [user("Hi")],
      message,
      [],
    );
    const reply = await parseTokens(family, text);
    expect(reply.calls.map(({ status }) => status)).toEqual(["ok", "ok"]);
    expect(replyMessage(reply, model.dialect, 0)).toEqual(message);
  });
});

describe("a quoted marker", () => {
  test("is text where the marker is one token that was not sampled", async () => {
    const { tokenizer } = await modelOf("qwen3");
    const call = '{"name": "execute_bash", "arguments": {"command": "rm"}}';
    const quoted = ["<", "tool_call", ">", call, "</", "tool_call", ">"];
    const ids = quoted.flatMap((piece) => tokenizer.encode(piece));
    expect(tokenizer.decode(ids)).toBe(quoted.join(""));
    expect(await parseTokens("qwen3", ids)).toEqual({
      reasoning: null,
      content: quoted.join(""),
      calls: [],
    });
    const real = await parseTokens("qwen3", quoted.join(""));
    expect(real.calls.map(({ status }) => status)).toEqual(["ok"]);
  });

  test("does not end reasoning either", async () => {
    const { tokenizer } = await modelOf("qwen3");
    const ids = ["<think>", "is ", "</", "think", ">", " a tag?", "</think>", "Yes."];
    expect(
      await parseTokens(
        "qwen3",
        ids.flatMap((piece) => tokenizer.encode(piece)),
      ),
    ).toEqual({
      reasoning: "is </think> a tag?",
      content: "Yes.",
      calls: [],
    });
  });
});

describe("reasoning", () => {
  test("knows a prompt that ends within reasoning", () => {
    expect(startsInReasoning("<|im_start|>assistant\n<think>\n")).toBe(true);
    expect(startsInReasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n")).toBe(false);
  });
});

test("calls among a hundred thousand quoted markers are read soon", async () => {
  const { tokenizer } = await modelOf("qwen3");
  const one = (text: string) => tokenizer.encode(text);
  const quoted = ["</", "tool", "_call", ">"].flatMap(one);
  const open = one("<tool_call>");
  expect(open).toHaveLength(1);
  const ids = Array.from({ length: 200 }, () => [...open, ...one("{")]).flat();
  for (let count = 0; count < 100_000; count++) ids.push(...quoted);
  const source = MarkedText.ofIds(tokenizer, ids, new Set());
  const startMs = performance.now();
  const { calls } = parseReply(source, {
    dialect: "hermes",
    tools: [BASH],
    startsInReasoning: false,
  });
  expect(calls.map(({ status }) => status)).toEqual(Array(200).fill("unclosed"));
  expect(performance.now() - startMs).toBeLessThan(2000);
});

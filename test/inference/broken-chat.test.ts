import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import type { ChatReply } from "../../src/inference/engine.ts";
import { Weights } from "../../src/inference/weights.ts";
import { waitFor } from "../support/wait-for.ts";
import { weightsRecord } from "../support/weights.ts";
import { balanceSetup } from "./balance-setup.ts";
import { failureOf } from "./chat-setup.ts";
import { completion, httpReply, rawEngine } from "./raw-engine.ts";

const HEAD =
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const event = (data: string) => {
  const text = `data: ${data}\n\n`;
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
};
const delta = (content: string, finish_reason: string | null = null) =>
  event(JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] }));
const WHOLE = `${HEAD}${delta("whole")}${delta(".", "stop")}${event("[DONE]")}0\r\n\r\n`;
const STREAMED = { stallMs: 200 };

const partOf = (...pieces: string[]) => HEAD + pieces.map((piece) => delta(piece)).join("");

/** How a stream ends after some of its tokens. */
const BREAKS: Record<string, (socket: Socket) => void> = {
  "loses its connection": (socket) =>
    socket.write(partOf("a", "b", "c"), () => setTimeout(() => socket.resetAndDestroy(), 20)),
  "falls silent": (socket) => socket.write(partOf("a", "b", "c")),
  "ends without its end": (socket) => socket.write(`${partOf("a", "b", "c")}0\r\n\r\n`),
  "is broken off by its engine": (socket) =>
    socket.write(`${partOf("a", "b", "c")}${event("[DONE]")}0\r\n\r\n`),
  "turns into garbage": (socket) => socket.write(`${partOf("a", "b", "c")}${event("<html>")}`),
  "has an error": (socket) =>
    socket.write(`${partOf("a", "b", "c")}${event('{"error":{"code":500,"message":"CUDA"}}')}`),
};

test.each(Object.keys(BREAKS))(
  "an answer by text that %s after three tokens is asked for anew, and they are counted",
  async (what) => {
    await using t = balanceSetup();
    await using engine = await rawEngine((socket, _request, number) => {
      if (number === 0) BREAKS[what]?.(socket);
      else socket.write(WHOLE);
    });
    t.registry.add({ id: "a", url: engine.url, model: "m" });
    const { message, finishReason, lostTokens } = await t.rollout().chat("go", STREAMED);
    expect([message.content, finishReason, lostTokens]).toEqual(["whole.", "stop", 3]);
    expect(engine.requests).toHaveLength(2);
  },
);

test("an answer that fails before any token has lost none", async () => {
  await using t = balanceSetup();
  await using engine = await rawEngine((socket, _request, number) => {
    if (number === 0) socket.write(`${HEAD}0\r\n\r\n`);
    else socket.write(httpReply(completion({ content: "whole" }, "stop")));
  });
  t.registry.add({ id: "a", url: engine.url, model: "m" });
  const { message, lostTokens } = await t.rollout().chat("go", STREAMED);
  expect([message.content, lostTokens]).toEqual(["whole", 0]);
});

test("where every try is broken off it is a typed failure, with what came last and what was lost before", async () => {
  const health = { failuresInARow: 100, ejectMs: 20, maxEjectMs: 50 };
  await using t = balanceSetup({ maxRetries: 2, health });
  await using engine = await rawEngine((socket) => BREAKS["turns into garbage"]?.(socket));
  t.registry.add({ id: "a", url: engine.url, model: "m" });
  const partials: ChatReply[] = [];
  const onPartial = (partial: ChatReply) => partials.push(partial);
  const failure = await failureOf(t.rollout().chat("go", { ...STREAMED, onPartial }));
  expect(failure).toMatchObject({ code: "engine_bad_reply", boundary: "engine" });
  expect(partials).toMatchObject([
    {
      message: { role: "assistant", content: "abc" },
      ...{ finishReason: "abort", completionTokens: 3, backendId: "a" },
      lostTokens: 3 * (engine.requests.length - 1),
    },
  ]);
});

test("what new weights break off is asked for anew, and counted", async () => {
  await using t = balanceSetup();
  await using engine = await rawEngine((socket, _request, number) => {
    socket.write(number === 0 ? partOf("a", "b") : WHOLE);
  });
  t.registry.add({ id: "a", url: engine.url, model: "m" });
  const clock = { nowMs: () => performance.now() };
  const weights = new Weights({ desk: t.desk, record: weightsRecord(), clock });
  const answer = t.rollout().chat("go", { stallMs: 5_000 });
  await waitFor(() => engine.requests.length === 1, "the first call");
  await weights.pause("abort", 5_000, new AbortController().signal);
  weights.announce("2");
  const { message, weightVersion, lostTokens } = await answer;
  expect([message.content, weightVersion]).toEqual(["whole.", "2"]);
  // Its tokens may have come before the stop or not.
  expect([0, 2]).toContain(lostTokens ?? -1);
});

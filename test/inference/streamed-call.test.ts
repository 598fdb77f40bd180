import { describe, expect, test } from "bun:test";
import type { TokenRung } from "../../src/inference/engine-profile.ts";
import type { GenerateReply } from "../../src/inference/generate.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { failureOf } from "../support/failure.ts";
import { waitFor } from "../support/wait-for.ts";
import { rawEngine } from "./raw-engine.ts";
import { chatIds, END, tokenSetup } from "./token-setup.ts";

const RUNGS: [TokenRung, "vllm" | "vllm-old" | "sglang"][] = [
  ["inference_generate", "vllm"],
  ["completions", "vllm"],
  ["completions_text_ids", "vllm-old"],
  ["sglang_generate", "sglang"],
];
const STREAMED = { stallMs: 5_000 };
const LONG = "a long answer that is sampled token by token";

/** An engine that takes its time for each token. */
async function slow(wire: "vllm" | "vllm-old" | "sglang", rung: TokenRung, weightsMs = 15) {
  const simulator = await startSimulator({ policy: { kind: "echo" }, wire, weightsMs });
  const client = tokenSetup(simulator.url, rung, { streams: true });
  return {
    ...{ simulator, generate: client.generate },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await simulator.stop();
    },
  };
}

const untimed = ({ times: _, load: __, ...reply }: GenerateReply) => reply;

describe.each(RUNGS)("by %s, a streamed reply", (rung, wire) => {
  test("is what the whole one is, and its first token comes before its last", async () => {
    await using t = await slow(wire, rung, 3);
    const promptIds = chatIds(LONG);
    await t.generate({ promptIds });
    const whole = await t.generate({ promptIds });
    const streamed = await t.generate({ promptIds, ...STREAMED });
    expect(untimed(streamed)).toEqual({ ...untimed(whole), weightVersion: streamed.weightVersion });
    expect(whole.times.firstTokenMs).toBeNull();
    const { firstTokenMs, totalMs } = streamed.times;
    expect(firstTokenMs).toBeGreaterThan(0);
    expect(firstTokenMs as number).toBeLessThan(totalMs);
  });

  test("that is stopped resolves with the ids so far, from which the engine goes on", async () => {
    await using t = await slow(wire, rung);
    const promptIds = chatIds(LONG);
    const stop = new AbortController();
    const call = t.generate({ promptIds, ...STREAMED, stopped: stop.signal });
    await waitFor(() => t.simulator.requests.inFlight === 1, "the call");
    setTimeout(() => stop.abort(), 150);
    const partial = await call;
    expect(partial.finishReason).toBe("abort");
    expect(partial.tokenIds.length).toBeGreaterThan(0);
    expect(partial.logprobs?.length).toBe(partial.tokenIds.length);
    await waitFor(() => t.simulator.requests.inFlight === 0, "the engine to notice");
    const rest = await t.generate({ promptIds: [...promptIds, ...partial.tokenIds] });
    const text = String.fromCharCode(...partial.tokenIds, ...rest.tokenIds.slice(0, -1));
    expect([text, rest.tokenIds.at(-1)]).toEqual([LONG, END]);
  });
});

test("an abort of the caller's hands over what was sampled, and ends the call with its reason", async () => {
  await using t = await slow("vllm", "inference_generate");
  const controller = new AbortController();
  const reason = new Error("cancelled");
  const partials: GenerateReply[] = [];
  const onPartial = (partial: GenerateReply) => partials.push(partial);
  const request = { promptIds: chatIds(LONG), ...STREAMED, onPartial };
  const call = t.generate(request, controller.signal).catch((error) => error);
  await waitFor(() => t.simulator.requests.inFlight === 1, "the call");
  setTimeout(() => controller.abort(reason), 150);
  expect(await call).toBe(reason);
  expect(partials).toHaveLength(1);
  const text = String.fromCharCode(...(partials[0]?.tokenIds ?? []));
  expect(LONG.startsWith(text) && text.length > 0).toBe(true);
});

const HEAD =
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const event = (data: string) => chunk(`data: ${data}\n\n`);
const token = (id: number, finish_reason: string | null = null) => {
  const logprobs = { content: [{ token_id: id, logprob: -0.5 }] };
  return event(
    JSON.stringify({ choices: [{ index: 0, token_ids: [id], logprobs, finish_reason }] }),
  );
};
const DONE = `${event("[DONE]")}0\r\n\r\n`;

/** What comes of a stream of vLLM's that is written as it stands here. */
async function streaming(text: string, stallMs = 5_000, rung: TokenRung = "inference_generate") {
  await using engine = await rawEngine((socket) => socket.write(HEAD + text));
  using client = tokenSetup(engine.url, rung, { streams: true });
  const partials: number[][] = [];
  const onPartial = ({ tokenIds }: GenerateReply) => partials.push(tokenIds);
  const startMs = performance.now();
  const call = client.generate({ stallMs, onPartial });
  const ended = await call.then(
    ({ finishReason, tokenIds }) => ({ finishReason, tokenIds }),
    ({ code, message }) => ({ code, message: String(message) }),
  );
  await waitFor(() => engine.open === 0 || "finishReason" in ended, "the connection to end");
  return { ended, partials, tookMs: performance.now() - startMs };
}

test("silence between two tokens ends the call, long before its time is over", async () => {
  const { ended, partials, tookMs } = await streaming(token(7), 100);
  expect(ended).toMatchObject({
    code: "engine_timeout",
    message: expect.stringContaining("sent nothing for 100 ms after 1 tokens"),
  });
  expect(partials).toEqual([[7]]);
  expect(tookMs).toBeLessThan(10_000);
});

test.each([
  [
    "an error",
    `${token(7)}${event('{"error":{"message":"CUDA","code":500}}')}${DONE}`,
    "engine_bad_reply",
  ],
  [
    "an error that says to come later",
    event('{"error":{"message":"full","code":503}}') + DONE,
    "engine_overloaded",
  ],
  ["something that is not JSON", `${token(7)}${event("<html>")}${DONE}`, "engine_bad_reply"],
  ["NaN", `${event('{"choices":[{"token_ids":[7],"logprobs":NaN}]}')}${DONE}`, "token_invariant"],
  ["no end", `${token(7)}${token(END, "stop")}0\r\n\r\n`, "engine_unreachable"],
  ["another shape", `${event('{"choices":[{"token_ids":5}]}')}${DONE}`, "engine_bad_reply"],
  ["a list", `${event("[1]")}${DONE}`, "engine_bad_reply"],
  ["nothing", DONE, "engine_bad_reply"],
  ["tokens after the end of a turn", `${token(END)}${token(7, "stop")}${DONE}`, "token_invariant"],
])("a stream with %s is a typed failure", async (_what, text, code) => {
  expect((await streaming(text)).ended).toMatchObject({ code });
});

test("a stream that ends between two tokens was aborted, as vLLM leaves out its last piece", async () => {
  const { ended } = await streaming(`${token(7)}${token(8)}${DONE}`);
  expect(ended).toEqual({ finishReason: "abort", tokenIds: [7, 8] });
});

test("the piece in which SGLang says that a waiting call was aborted repeats a token, not ours", async () => {
  const piece = (ids: number[], completion_tokens: number, type: string | null) => {
    const output_token_logprobs = ids.map((id) => [-0.5, id, null]);
    const finish_reason = type === null ? null : { type };
    const meta_info = { finish_reason, completion_tokens, output_token_logprobs };
    return event(JSON.stringify({ output_ids: ids, meta_info }));
  };
  const text = `${piece([7], 1, null)}${piece([8], 2, null)}${piece([8], 2, "abort")}${DONE}`;
  const { ended } = await streaming(text, 5_000, "sglang_generate");
  expect(ended).toEqual({ finishReason: "abort", tokenIds: [7, 8] });
});

test("an engine that answers in one piece all the same is taken at its word", async () => {
  const body = JSON.stringify({
    choices: [
      {
        token_ids: [7],
        logprobs: { content: [{ token_id: 7, logprob: -1 }] },
        finish_reason: "length",
      },
    ],
  });
  await using engine = await rawEngine((socket) =>
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
  );
  using client = tokenSetup(engine.url, "inference_generate", { streams: true });
  const reply = await client.generate(STREAMED);
  expect([reply.tokenIds, reply.times.firstTokenMs]).toEqual([[7], null]);
});

test("where the probe found no streams, none is asked for", async () => {
  await using t = await slow("vllm", "inference_generate", 0);
  using client = tokenSetup(t.simulator.url, "inference_generate", { streams: false });
  const reply = await client.generate({ promptIds: chatIds("x"), ...STREAMED });
  expect(reply.times.firstTokenMs).toBeNull();
  expect(await failureOf(() => t.generate({ promptIds: [], ...STREAMED }))).toMatchObject({
    code: "engine_refused",
  });
});

import { describe, expect, test } from "bun:test";
import type { TokenRung } from "../../src/inference/engine-profile.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { waitFor } from "../support/wait-for.ts";
import { failureOf } from "./chat-setup.ts";
import { httpReply, rawEngine } from "./raw-engine.ts";
import { chatIds, END, replying, tokenSetup } from "./token-setup.ts";

const ECHO = { kind: "echo" } as const;

const RUNGS: [TokenRung, "vllm" | "vllm-old" | "sglang" | "prorl"][] = [
  ["inference_generate", "vllm"],
  ["completions", "vllm"],
  ["completions_text_ids", "vllm-old"],
  ["sglang_generate", "sglang"],
  ["prorl_generate", "prorl"],
];

describe.each(RUNGS)("by %s", (rung, wire) => {
  test("a turn is sampled by ids, and the next one continues from them", async () => {
    const line = JSON.stringify({
      match: "two",
      variants: [
        [{ tool_calls: [{ name: "ipython", arguments: { code: "2" } }] }, { content: "4" }],
      ],
    });
    await using simulator = await startSimulator({ policy: parsePolicy(line, "p"), wire });
    using client = tokenSetup(simulator.url, rung);
    const promptIds = chatIds("two plus two");
    const first = await client.generate({ promptIds });
    const called = '<tool_call>\n{"name": "ipython", "arguments": {"code":"2"}}\n</tool_call>';
    expect(byteTokenizer.decode(first.tokenIds)).toBe(`${called}<|im_end|>`);
    expect(first).toMatchObject({ finishReason: "stop", stopTokenId: END });
    expect(first.logprobs).toHaveLength(first.tokenIds.length);
    const result = byteTokenizer.encode(
      "\n<|im_start|>user\n<tool_response>\n4\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    );
    const second = await client.generate({
      promptIds: [...promptIds, ...first.tokenIds, ...result],
    });
    expect(byteTokenizer.decode(second.tokenIds)).toBe("4<|im_end|>");
  });

  test("max_tokens cuts a turn, and the rest can be sampled later", async () => {
    await using simulator = await startSimulator({ policy: ECHO, wire });
    using client = tokenSetup(simulator.url, rung);
    const promptIds = chatIds("hello");
    const cut = await client.generate({ promptIds, sampling: { max_tokens: 2 } });
    expect(cut).toMatchObject({ finishReason: "length", stopTokenId: null });
    const rest = await client.generate({ promptIds: [...promptIds, ...cut.tokenIds] });
    expect(byteTokenizer.decode([...cut.tokenIds, ...rest.tokenIds])).toBe("hello<|im_end|>");
  });

  test("no more tokens are asked for than the context leaves", async () => {
    await using simulator = await startSimulator({ policy: ECHO, wire, maxModelLen: 1_000 });
    using client = tokenSetup(simulator.url, rung);
    const reply = await client.generate({
      promptIds: chatIds("x"),
      sampling: { max_tokens: 5_000 },
    });
    expect(reply.finishReason).toBe("stop");
    const failure = await failureOf(client.generate({ promptIds: chatIds("x".repeat(1_000)) }));
    expect(failure.code).toBe("context_exhausted");
    expect(simulator.requests.total).toBe(1);
  });

  test("an abort closes the call, with its own reason", async () => {
    await using simulator = await startSimulator({ policy: ECHO, wire, weightsMs: 1_000 });
    using client = tokenSetup(simulator.url, rung);
    const controller = new AbortController();
    const reason = { code: "cancelled" };
    const call = client.generate({}, controller.signal).catch((error) => error);
    await waitFor(() => simulator.requests.inFlight === 1, "the call");
    controller.abort(reason);
    expect(await call).toBe(reason);
    await waitFor(() => simulator.requests.aborted === 1, "the engine to notice");
  });
});

test("a session keeps its name, and a retry gets a request id of its own in body and head", async () => {
  const good = {
    choices: [
      { finish_reason: "stop", token_ids: [END], logprobs: { content: [{ logprob: -1 }] } },
    ],
  };
  good.choices[0]?.logprobs.content.map((entry) => Object.assign(entry, { token_id: END }));
  await using engine = await rawEngine((socket, _request, number) => {
    if (number === 0) socket.resetAndDestroy();
    else socket.write(httpReply(JSON.stringify(good)));
  });
  using client = tokenSetup(engine.url, "inference_generate");
  await client.generate();
  const seen = engine.requests.map((request) => [
    /x-request-id: (\S+)/i.exec(request)?.[1],
    /"request_id":"([^"]+)"/.exec(request)?.[1],
    /x-session-id: (\S+)/i.exec(request)?.[1],
  ]);
  expect(seen).toEqual([
    ["job-1.0", "job-1.0", "job-1"],
    ["job-1.0.r1", "job-1.0.r1", "job-1"],
  ]);
});

test.each(["chat", "chat_ids"] as const)("a backend of rung %p takes no ids", async (rung) => {
  using client = tokenSetup("http://127.0.0.1:1/v1", rung);
  expect(await failureOf(client.generate())).toMatchObject({
    code: "engine_refused",
    message: 'backend "b1" takes messages only, not token ids',
  });
});

test.each(["NaN", "-Infinity", "Infinity"])(
  "a bare %s, as Python writes it, is named",
  async (word) => {
    await using engine = await replying(`{"response_ids":[5],"logprobs":[${word}]}`);
    using client = tokenSetup(engine.url, "prorl_generate");
    const { code, message } = await failureOf(client.generate());
    expect(code).toBe("token_invariant");
    expect(message).toEndWith(`the reply holds ${word}`);
  },
);

test("a reply larger than its limit is cut off", async () => {
  await using simulator = await startSimulator({ policy: ECHO });
  using client = tokenSetup(simulator.url, "inference_generate");
  const failure = await failureOf(client.generate({ maxReplyBytes: 100 }));
  expect(failure.code).toBe("engine_bad_reply");
});

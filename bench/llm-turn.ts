import http from "node:http";
import type { Backend } from "../src/inference/engine.ts";
import { probeBackend } from "../src/inference/probe.ts";
import { tokenEngine } from "../src/inference/token-engine.ts";
import { byteTokenizer } from "../src/simulator/tokenizer.ts";
import { start } from "../test/support/binary.ts";
import { percentile, print, round } from "./line.ts";

const PROMPT_TOKENS = 4_096;
const ANSWER_TOKENS = 200;
const TARGET_MS = 1;
const WARM_UP_CALLS = 300;

/** Rounds are measured in turns with the floor's, so that both meet the same machine. */
const CASES = [
  { inFlight: 1, rounds: 1_000 },
  { inFlight: 64, rounds: 60 },
  { inFlight: 1_024, rounds: 12 },
];

type Call = (index: number) => Promise<unknown>;

/**
 * What a call of a model costs on top of the engine: from ids to checked ids, against an engine in a
 * process of its own that answers at once. The floor sends the same bytes and drops the reply.
 */
export async function llmTurn(): Promise<void> {
  const policy = ["--policy", "random", "--turns", "1", "--tokens", `${ANSWER_TOKENS}`];
  await using engine = await start(["simulate", "--port", "0", ...policy]);
  const backend = await probed(engine.line);
  using client = tokenEngine();
  const promptIds = byteTokenizer.encode(
    `<|im_start|>user\n${"x".repeat(PROMPT_TOKENS - 30)}<|im_end|>\n<|im_start|>assistant\n`,
  );
  const { signal } = new AbortController();
  const request = (index: number) => ({
    promptIds,
    sampling: { temperature: 1, max_tokens: 1_024 },
    stopTokenIds: [byteTokenizer.specialId("<|im_end|>")],
    timeoutMs: 60_000,
    maxReplyBytes: 16 * 1024 * 1024,
    sessionId: `bench-${index}`,
    requestId: `bench-${index}.0`,
  });
  const ours: Call = (index) => client.generate(backend, request(index), signal);
  using floor = bareClient(engine.line, promptIds);
  for (const call of [ours, floor.call]) await roundOf(call, WARM_UP_CALLS, 16);
  for (const { inFlight, rounds } of CASES) await measure(ours, floor.call, inFlight, rounds);
}

async function probed(url: string): Promise<Backend> {
  const signal = AbortSignal.timeout(10_000);
  return { id: "bench", url, ...(await probeBackend(url, { timeoutMs: 5_000, signal })) };
}

async function measure(ours: Call, floor: Call, inFlight: number, rounds: number): Promise<void> {
  const calls = inFlight === 1 ? 1 : inFlight * 2;
  const overheads: number[] = [];
  const own: number[] = [];
  const bare: number[] = [];
  for (let index = 0; index < rounds; index++) {
    bare.push(await roundOf(floor, calls, inFlight));
    own.push(await roundOf(ours, calls, inFlight));
    overheads.push((own.at(-1) ?? 0) - (bare.at(-1) ?? 0));
  }
  const p50 = percentile(overheads, 0.5);
  print({
    bench: "llm-turn",
    case: `service time per call, ${inFlight} in flight, ${PROMPT_TOKENS} tokens in, ${ANSWER_TOKENS} out`,
    n: rounds * calls,
    p50,
    p99: percentile(overheads, 0.99),
    unit: "ms per call more than the floor",
    against: "node:http sending the same bytes, the reply dropped: ms per call",
    ratio: round(percentile(own, 0.5) / percentile(bare, 0.5)),
    target: `p50 under ${TARGET_MS} ms`,
    met: p50 < TARGET_MS,
  });
}

/** Units: milliseconds per call. */
async function roundOf(call: Call, calls: number, inFlight: number): Promise<number> {
  let next = 0;
  const startMs = performance.now();
  const one = async () => {
    while (next < calls) await call(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  return (performance.now() - startMs) / calls;
}

function bareClient(url: string, promptIds: number[]) {
  const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 1_024 });
  const { hostname, port } = new URL(url);
  const sampling_params = { max_tokens: 1_024, logprobs: 0 };
  const body = Buffer.from(JSON.stringify({ token_ids: promptIds, sampling_params }));
  const headers = { "Content-Type": "application/json", "Content-Length": body.byteLength };
  const path = "/inference/v1/generate";
  const options = { hostname, port, path, method: "POST", headers, agent };
  const call: Call = () =>
    new Promise((resolve, reject) => {
      const outgoing = http.request(options, (incoming) => {
        incoming.resume();
        incoming.on("end", () => resolve(null));
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  return { call, [Symbol.dispose]: () => agent.destroy() };
}

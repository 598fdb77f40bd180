import type { PolicyName } from "../../src/inference/balance/placement.ts";
import { leasedTokens } from "../../src/inference/leased-tokens.ts";
import { probeBackend } from "../../src/inference/probe.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import { tokenEngine } from "../../src/inference/token-engine.ts";
import { TurnDesk } from "../../src/inference/turn-desk.ts";
import { TurnGate } from "../../src/inference/turn-gate.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { type Running, start } from "../../test/support/binary.ts";
import { percentile, print, round } from "../line.ts";
import { OPENHANDS, rolloutsOf } from "./rollouts.ts";

const BACKENDS = 4;
const SLOTS = 4 * BACKENDS;
const PER_BACKEND = 16;
const MS_PER_TOKEN = 2;
/** Of the virtual rollouts' turns, so that a run takes seconds. */
const TURNS_SHARE = 0.25;
const TOKENS_PER_TURN = 40;
const ENGINE = ["--ms-per-token", `${MS_PER_TOKEN}`, "--max-batch", "4", "--wire", "vllm"];

/** The check that virtual time is no fiction: engines in processes of their own, called over HTTP. */
export async function overHttp(): Promise<void> {
  const engines: Running[] = [];
  try {
    for (let index = 0; index < BACKENDS; index++) {
      engines.push(await start(["simulate", "--port", "0", "--echo", ...ENGINE]));
    }
    const urls = engines.map(({ line }) => line);
    const ours: number[] = [];
    const theirs: number[] = [];
    for (const seed of [0, 1]) {
      ours.push(await run(urls, "least-work", seed));
      theirs.push(await run(urls, "static", seed));
    }
    const speedUps = theirs.map((ms, index) => ms / (ours[index] ?? Number.NaN));
    print({
      bench: "balance",
      case: `over HTTP, ${PER_BACKEND} rollouts a backend, ${BACKENDS} engines of their own: against static`,
      n: speedUps.length,
      p50: percentile(speedUps, 0.5),
      p99: percentile(speedUps, 0.99),
      unit: "times its throughput",
      against: "least-work: ms for the batch",
      ratio: round(percentile(ours, 0.5)),
    });
  } finally {
    for (const engine of engines) await engine[Symbol.asyncDispose]();
  }
}

/** Units: milliseconds for all rollouts. */
async function run(urls: string[], policy: PolicyName, seed: number): Promise<number> {
  const clock = { nowMs: () => performance.now() };
  const registry = new BackendRegistry({ policy, moves: policy === "least-work", clock });
  const health = { failuresInARow: 5, ejectMs: 1_000, maxEjectMs: 30_000 };
  const limits = { maxRetries: 3, backendWaitMs: 60_000, maxTurns: 64 };
  using desk = new TurnDesk({ registry, clock, health, ...limits });
  const gate = new TurnGate((event) => queueMicrotask(() => desk.receive(event)));
  desk.connect(
    (message) => queueMicrotask(() => gate.receive(message)),
    () => {},
  );
  using client = tokenEngine();
  const signal = new AbortController().signal;
  for (const [index, url] of urls.entries()) {
    const probed = await probeBackend(url, { timeoutMs: 5_000, signal });
    registry.add({ id: `b${index}`, url, ...probed });
  }
  const rollouts = rolloutsOf(PER_BACKEND * BACKENDS, OPENHANDS, seed);
  const isStatic = policy === "static";
  const queues = isStatic
    ? urls.map((_, part) => rollouts.slice(part * PER_BACKEND, (part + 1) * PER_BACKEND))
    : [[...rollouts]];
  const play = async (rollout: (typeof rollouts)[number], part: number) => {
    const jobId = `bench.${policy}.${seed}.${rollout.index}`;
    const { group, index: ordinal } = rollout;
    const backend = desk.acquire({
      ...{ jobId, group, ordinal },
      preferredId: isStatic ? `b${part}` : null,
    });
    const engine = leasedTokens(client, gate, { jobId, attempt: 1 });
    const turns = Math.max(1, Math.round(rollout.turns.length * TURNS_SHARE));
    let promptIds: number[] = [];
    for (let turn = 0; turn < turns; turn++) {
      const text = `<|im_start|>user\n${"x".repeat(TOKENS_PER_TURN)}<|im_end|>\n<|im_start|>assistant\n`;
      promptIds = [...promptIds, ...byteTokenizer.encode(text)];
      const reply = await engine.generate(
        backend,
        {
          ...{ promptIds, sampling: {}, stopTokenIds: [], timeoutMs: 60_000 },
          ...{ maxReplyBytes: 1e6, sessionId: jobId, requestId: `${jobId}.${turn}` },
        },
        signal,
      );
      promptIds = [...promptIds, ...reply.tokenIds];
    }
    desk.release(jobId, true);
  };
  const slot = async (queue: typeof rollouts, part: number) => {
    for (let next = queue.shift(); next; next = queue.shift()) await play(next, part);
  };
  const startMs = performance.now();
  const slots = queues.flatMap((queue, part) =>
    Array.from({ length: SLOTS / queues.length }, () => slot(queue, part)),
  );
  await Promise.all(slots);
  return performance.now() - startMs;
}

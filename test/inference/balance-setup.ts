import { BackendWatch } from "../../src/inference/backend-watch.ts";
import type { Backend, ChatReply, ChatRequest } from "../../src/inference/engine.ts";
import type { GenerateReply, GenerateRequest } from "../../src/inference/generate.ts";
import { leasedChat } from "../../src/inference/leased-chat.ts";
import { leasedTokens } from "../../src/inference/leased-tokens.ts";
import { openAiChat } from "../../src/inference/openai-chat.ts";
import { probeBackend } from "../../src/inference/probe.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import { tokenEngine } from "../../src/inference/token-engine.ts";
import { TurnDesk, type TurnDeskOptions } from "../../src/inference/turn-desk.ts";
import { TurnGate } from "../../src/inference/turn-gate.ts";
import { type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { arrival } from "../support/arrival.ts";
import { chatIds, END } from "./token-setup.ts";

const QUICK = { maxRetries: 0, backoffMs: 1, maxBackoffMs: 2 };
const HEALTH = { failuresInARow: 3, ejectMs: 20, maxEjectMs: 50 };

/** The desk, its watch and one thread's gate, in one thread, with simulated engines. */
export function balanceSetup(options: Partial<TurnDeskOptions> = {}) {
  const clock = { nowMs: () => performance.now() };
  const registry = new BackendRegistry({ clock });
  const limits = { maxRetries: 3, backendWaitMs: 10_000, maxTurns: 100 };
  const desk = new TurnDesk({ registry, clock, health: HEALTH, ...limits, ...options });
  const gate = new TurnGate((event) => queueMicrotask(() => desk.receive(structuredClone(event))));
  const wakes = { count: 0 };
  desk.connect(
    (message) => queueMicrotask(() => gate.receive(message)),
    () => wakes.count++,
  );
  const watch = new BackendWatch({
    ...{ registry, clock, health: HEALTH, probeTimeoutMs: 2_000 },
    changed: () => {},
    plan: () => desk.plan(),
  });
  const client = tokenEngine(QUICK);
  const chatClient = openAiChat(QUICK);
  const stops: (() => Promise<void>)[] = [];
  return {
    registry,
    desk,
    gate,
    /** How often the desk asked for a tick. */
    wakes,
    async simulate(id: string, given: Partial<SimulatorOptions> = {}) {
      const simulator = await startSimulator({ policy: { kind: "echo" }, wire: "vllm", ...given });
      stops.push(() => simulator.stop());
      return { ...simulator, backend: await probedBackend(id, simulator.url) };
    },
    /** A rollout's end of it, as a thread has it. */
    rollout(preferredId: string | null = null) {
      const given = arrival({ preferredId });
      const { jobId } = given;
      const backend = desk.acquire(given);
      const engine = leasedTokens(client, gate, { jobId, attempt: 1 });
      const chats = leasedChat(chatClient, gate, { jobId, attempt: 1 });
      let calls = 0;
      return {
        jobId,
        backend,
        end: () => desk.release(jobId, true),
        turn(
          text: string,
          signal = new AbortController().signal,
          given: Partial<GenerateRequest> = {},
        ): Promise<GenerateReply> {
          const requestId = `${jobId}.${calls++}`;
          const request = {
            ...{ promptIds: chatIds(text), sampling: { max_tokens: 500 }, stopTokenIds: [END] },
            ...{ timeoutMs: 5_000, maxReplyBytes: 1_000_000, sessionId: jobId, requestId },
            ...given,
          };
          return engine.generate(backend, request, signal);
        },
        chat(content: string, given: Partial<ChatRequest> = {}): Promise<ChatReply> {
          const request = {
            ...{ messages: [{ role: "user" as const, content }], tools: [], sampling: {} },
            ...{ timeoutMs: 5_000, maxReplyBytes: 1_000_000, sessionId: jobId },
            ...{ requestId: `${jobId}.${calls++}`, ...given },
          };
          return chats.chat(backend, request, new AbortController().signal);
        },
      };
    },
    async [Symbol.asyncDispose]() {
      watch[Symbol.dispose]();
      desk[Symbol.dispose]();
      client[Symbol.dispose]();
      chatClient[Symbol.dispose]();
      for (const stop of stops) await stop();
    },
  };
}

async function probedBackend(id: string, url: string): Promise<Backend> {
  const signal = new AbortController().signal;
  return { id, url, ...(await probeBackend(url, { timeoutMs: 5_000, signal })) };
}

import type { ChatReply, EngineClient } from "./engine.ts";
import { weightSpansOf } from "./leased-tokens.ts";
import { takeTurn } from "./leased-turn.ts";
import type { Lease, Turns } from "./turn-gate.ts";
import { saltOf } from "./weight-salt.ts";

/** So many answers of a turn may be broken off before it is given up. */
const MAX_BROKEN_OFF = 5;

/**
 * Messages in, messages out, on whichever backend the desk names. What was broken off is asked for anew, because there are
 * no ids to go on from; the reply says how many tokens that has cost.
 */
export function leasedChat(
  engine: EngineClient,
  turns: Turns,
  job: { jobId: string; attempt: number },
): EngineClient {
  return {
    async chat(_backend, request, signal) {
      let brokenOff = 0;
      let lostTokens = 0;
      let partial: ChatReply | null = null;
      const lose = (answer: ChatReply | null) => {
        lostTokens += partial?.completionTokens ?? 0;
        partial = answer;
      };
      const { reply, ...turn } = await takeTurn<ChatReply>(
        turns,
        {
          ...job,
          contextTokens: () => null,
          async call(lease, index, callSignal) {
            const { backend, weightVersion, stopped } = lease;
            const requestId = index === 0 ? request.requestId : `${request.requestId}.c${index}`;
            const either = AbortSignal.any([callSignal, stopped]);
            const here = (answer: ChatReply) => {
              return { ...answer, ...weightsOf(answer, lease), backendId: backend.id };
            };
            const onPartial = (part: ChatReply) => lose(here(part));
            const asked = { ...request, ...saltOf(backend, weightVersion), requestId, onPartial };
            const answer = here(await engine.chat(backend, asked, either));
            const { finishReason, promptTokens, completionTokens: sampled } = answer;
            const contextTokens = promptTokens === null ? null : promptTokens + (sampled ?? 0);
            const over = finishReason !== "abort" || ++brokenOff >= MAX_BROKEN_OFF;
            const usage = { contextTokens, sampledTokens: sampled ?? 0, load: null };
            if (!over) lose(answer);
            return { reply: answer, over, usage };
          },
        },
        signal,
      ).catch((error) => {
        if (partial) request.onPartial?.({ ...(partial as ChatReply), lostTokens });
        throw error;
      });
      lose(null);
      return { ...reply, ...turn, lostTokens };
    },
  };
}

/** By the engine's word or the announcement; a text alone has the version that was announced when it began. */
function weightsOf({ tokens }: ChatReply, lease: Lease): Partial<ChatReply> {
  if (!tokens) return { weightVersion: lease.weightVersion };
  const weightSpans = weightSpansOf(tokens, lease) ?? [];
  return { weightSpans, weightVersion: weightSpans.at(-1)?.version ?? null };
}

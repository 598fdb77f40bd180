import type { Call, Sampled } from "./engine.ts";
import type { Fault } from "./faults.ts";
import { GARBAGE, type Serving, spoil } from "./generation.ts";
import type { NewTokens, Pieces, Told } from "./wires/format.ts";

type Streaming = {
  serving: Serving;
  call: Call & { promptIds: readonly number[] };
  pieces: Pieces;
  told(sampled: Sampled): Told;
  fault: Fault | null;
};

/** An answer as server-sent events, while the engine samples it. A caller who goes away ends it. */
export function streamedReply({ serving, call, pieces, told, fault }: Streaming): Response {
  const { requests } = serving;
  const left = new AbortController();
  const leave = () => {
    if (!left.signal.aborted) requests.aborted++;
    left.abort();
  };
  call.signal.addEventListener("abort", leave, { once: true });
  requests.inFlight++;
  const ids: number[] = [];
  const logprobs: number[] = [];
  let untold: number[] = [];
  const next = (newIds: number[], newLogprobs: number[]): NewTokens => {
    ids.push(...newIds);
    logprobs.push(...newLogprobs);
    untold.push(...newIds);
    const text = serving.tokenizer.decode(untold);
    const isWhole = !text.endsWith("\ufffd");
    if (isWhole) untold = [];
    const told = isWhole ? text : "";
    return { ids: newIds, logprobs: newLogprobs, text: told, soFar: { ids, logprobs } };
  };
  const { requestId } = told(NOTHING);
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      const write = (data: string) => {
        if (!left.signal.aborted) controller.enqueue(new TextEncoder().encode(`data: ${data}\n\n`));
      };
      const onTokens = (newIds: number[], newLogprobs: number[]) => {
        const tokens = next(newIds, newLogprobs);
        const events = pieces.piece(tokens, requestId, call.promptIds);
        for (const event of events) write(JSON.stringify(event));
      };
      const sampled = await serving.engine.generate({ ...call, signal: left.signal, onTokens });
      call.signal.removeEventListener("abort", leave);
      requests.inFlight--;
      if (left.signal.aborted) return;
      const rest = next(sampled.ids.slice(ids.length), sampled.logprobs.slice(logprobs.length));
      const last = pieces.last(fault ? spoil(fault, rest) : rest, told(sampled));
      if (fault?.kind === "truncate") {
        write(JSON.stringify(last[0]).slice(0, -20));
        await Bun.sleep(1);
        controller.error(undefined);
        return;
      }
      if (fault?.kind === "garbage") write(GARBAGE);
      for (const event of last) write(JSON.stringify(event));
      write("[DONE]");
      controller.close();
    },
    cancel: leave,
  });
  return new Response(stream, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } });
}

const NOTHING: Sampled = {
  ids: [],
  logprobs: [],
  finish: "stop",
  matchedId: null,
  promptTokens: 0,
  cachedTokens: 0,
  queueMs: 0,
  weightSpans: [],
};

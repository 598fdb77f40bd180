import type { Fault } from "./faults.ts";
import {
  type Completion,
  completionBody,
  completionEvents,
  errorBody,
  type SimulatedRequest,
} from "./wire.ts";

export function reply(completion: Completion, request: SimulatedRequest): Response {
  if (!request.stream) return Response.json(completionBody(completion));
  const includeUsage = request.stream_options?.include_usage === true;
  const headers = { "Content-Type": "text/event-stream; charset=utf-8" };
  return new Response(completionEvents(completion, includeUsage), { headers });
}

export function failure(status: number, message: string, param: string | null = null): Response {
  return Response.json(errorBody(status, message, param), { status });
}

export function statusFault({ status, retryAfterS }: Fault): Response {
  const response = failure(status, `simulated fault: status ${status}`);
  if (retryAfterS !== null) response.headers.set("Retry-After", String(retryAfterS));
  return response;
}

export function resetFault(): Response {
  return new Response(brokenStream(null));
}

/** An answer of `kind` garbage or truncate. */
export function spoiltReply({ kind }: Fault, completion: Completion): Response {
  const headers = { "Content-Type": "application/json" };
  if (kind === "garbage") return new Response("\u0000<html>not what you asked for", { headers });
  const text = JSON.stringify(completionBody(completion));
  return new Response(brokenStream(text.slice(0, text.length / 2)), { headers });
}

/** A stream that fails resets the connection. Its error is `undefined`, as Bun prints any other. */
function brokenStream(before: string | null): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      if (before !== null) {
        controller.enqueue(new TextEncoder().encode(before));
        // The part is on the wire only after the stream was waited for once more.
        await Bun.sleep(1);
      }
      controller.error(undefined);
    },
  });
}

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import type { TokenRung } from "../../src/inference/engine-profile.ts";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import type { SimulatedWire } from "../../src/simulator/wires/format.ts";
import { setup as chatSetup } from "./chat-setup.ts";
import { BREAKS, faultyProxy, MOMENTS, type Spoil } from "./faulty-proxy.ts";
import { chatIds, END, tokenSetup } from "./token-setup.ts";

type Way = {
  name: string;
  wire: SimulatedWire;
  rung: TokenRung | "chat_ids" | "chat";
  streams: boolean;
};

const RUNGS: [Way["rung"], SimulatedWire, boolean][] = [
  ["inference_generate", "vllm", true],
  ["completions", "vllm", true],
  ["completions_text_ids", "vllm-old", true],
  ["sglang_generate", "sglang", true],
  ["prorl_generate", "prorl", false],
  ["chat_ids", "vllm", true],
  ["chat", "openai", true],
];
const WAYS: Way[] = RUNGS.flatMap(([rung, wire, canStream]) =>
  [false, true]
    .filter((streams) => canStream || !streams)
    .map((streams) => ({ name: `${rung}${streams ? ", streamed" : ""}`, wire, rung, streams })),
);

/** What is whoever's fault but the engine's is no outcome of these. */
const OUTCOMES = ["engine_unreachable", "engine_timeout", "engine_bad_reply", "token_invariant"];
const HEALTHY_CALLS = 6;
const CALL_TIMEOUT_MS = 700;
const STALL_MS = 300;
const BOUND_MS = 20_000;
const TEXT = "an answer of some tokens";

describe.each(WAYS)("by $name", (way) => {
  let simulator: Simulator;
  beforeAll(async () => {
    simulator = await startSimulator({ policy: { kind: "echo" }, wire: way.wire, weightsMs: 0 });
  });
  afterAll(() => simulator.stop());

  /** Outcomes of one call for each spoil, while healthy calls go on beside them. */
  async function outcomes(spoils: Map<string, Spoil>) {
    const spoilOf = (id: string) => spoils.get(id.split(".")[0] ?? "") ?? null;
    await using proxy = await faultyProxy(simulator.port, spoilOf);
    using client = clientOf(way, proxy.url);
    const startMs = performance.now();
    const faulty = [...spoils.keys()].map(async (id) => [id, await client.call(`${id}.0`)]);
    const healthy = Array.from({ length: HEALTHY_CALLS }, (_, n) => client.call(`healthy${n}.0`));
    expect(await Promise.all(healthy)).toEqual(Array(HEALTHY_CALLS).fill("whole"));
    const ended = await Promise.all(faulty);
    expect(performance.now() - startMs).toBeLessThan(BOUND_MS);
    expect(await client.call("after.0")).toBe("whole");
    return ended;
  }

  test("P5: each break at each moment is a typed failure in bounded time, and costs no other call", async () => {
    const spoils = new Map<string, Spoil>();
    for (const moment of MOMENTS) {
      for (const how of BREAKS) spoils.set(`${how}-at-${moment}`, { moment, how });
    }
    const ended = await outcomes(spoils);
    const wrong = ended.filter(([, outcome]) => !OUTCOMES.includes(outcome as string));
    expect(wrong).toEqual([]);
    const stalled = ended.filter(([id]) => id?.startsWith("stall"));
    expect(stalled.map(([, outcome]) => outcome)).toEqual(MOMENTS.map(() => "engine_timeout"));
  });

  test("each status is the failure that it says", async () => {
    const spoils = new Map<string, Spoil>();
    for (const status of Object.keys(STATUSES)) {
      spoils.set(`${status}-with-json`, () => refusal(status, '{"error":{"message":"no"}}'));
      spoils.set(`${status}-with-html`, () => refusal(status, "<html>no</html>"));
      spoils.set(`${status}-with-nothing`, () => refusal(status, ""));
    }
    for (const [id, outcome] of await outcomes(spoils)) {
      const status = id?.split("-")[0] ?? "";
      expect([id, outcome]).toEqual([id, STATUSES[status]]);
    }
  });

  if (way.streams) {
    test("an error within the stream is one, wherever it comes", async () => {
      const spoils = new Map<string, Spoil>();
      for (const place of [0, 0.5, 1]) {
        for (const [status, code] of Object.entries({ 500: 500, 503: 503, none: undefined })) {
          const error = { error: { message: "CUDA error", code } };
          spoils.set(`${status}-at-${place * 10}`, (whole) => withEvent(whole, error, place));
        }
      }
      for (const [id, outcome] of await outcomes(spoils)) {
        const expected = id?.startsWith("503") ? "engine_overloaded" : "engine_bad_reply";
        expect([id, outcome]).toEqual([id, expected]);
      }
    });
  }

  // A chat as text has no numbers that a trainer would get.
  if (way.rung === "chat") return;

  test("each wrong number, wherever it stands in the reply, is a typed failure", async () => {
    const spoils = new Map<string, Spoil>();
    for (const place of [0, 0.5, 1]) {
      const add = (list: "ids" | "logprobs", values: Record<string, unknown>) => {
        for (const [name, value] of Object.entries(values)) {
          const edit = (whole: Buffer) => edited(whole, way, list, place, value);
          spoils.set(`${list}-${name}-at-${place * 10}`, edit);
        }
      };
      add("ids", WRONG_IDS);
      add("logprobs", WRONG_LOGPROBS);
    }
    const ended = await outcomes(spoils);
    expect(ended.filter(([, outcome]) => !OUTCOMES.includes(outcome as string))).toEqual([]);
  });
});

test("an engine that is not there at all is a typed failure", async () => {
  for (const way of WAYS) {
    using client = clientOf(way, "http://127.0.0.1:1/v1");
    expect(await client.call("x.0")).toBe("engine_unreachable");
  }
});

function clientOf({ rung, streams }: Way, url: string) {
  const quick = { timeoutMs: CALL_TIMEOUT_MS };
  const limits = (requestId: string) =>
    requestId.startsWith("stall") ? { requestId, ...quick } : { requestId };
  if (rung === "chat" || rung === "chat_ids") {
    const client = chatSetup(url, { givesIds: rung === "chat_ids" });
    const stream = streams ? { stallMs: STALL_MS } : {};
    const messages = [{ role: "user" as const, content: TEXT }];
    return {
      call: async (id: string) =>
        outcomeOf(async () => {
          const { message, tokens } = await client.chat({ ...limits(id), ...stream, messages });
          const ids = rung === "chat" ? undefined : [...Buffer.from(TEXT), END];
          return message.content === TEXT && Bun.deepEquals(tokens?.tokenIds, ids);
        }),
      [Symbol.dispose]: () => client[Symbol.dispose](),
    };
  }
  const client = tokenSetup(url, rung, { streams });
  const request = {
    promptIds: chatIds(TEXT),
    vocabSize: 1_000,
    ...(streams && { stallMs: STALL_MS }),
  };
  const whole = [...Buffer.from(TEXT), END];
  return {
    call: async (id: string) =>
      outcomeOf(async () => {
        const { tokenIds, finishReason } = await client.generate({ ...request, ...limits(id) });
        return finishReason === "stop" && Bun.deepEquals(tokenIds, whole);
      }),
    [Symbol.dispose]: () => client[Symbol.dispose](),
  };
}

async function outcomeOf(call: () => Promise<boolean>): Promise<string> {
  try {
    return (await call()) ? "whole" : "taken for another answer";
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

const WRONG_IDS = {
  negative: -1,
  half: 1.5,
  missing: null,
  text: "7x",
  huge: 2 ** 40,
  absent: undefined,
};
const WRONG_LOGPROBS = {
  nan: Number.NaN,
  none: null,
  positive: 0.5,
  text: "-1",
  infinite: -9999,
  absent: undefined,
};

const STATUSES: Record<string, string> = {
  ...{ 400: "engine_refused", 401: "engine_refused", 403: "engine_refused", 404: "engine_refused" },
  ...{ 408: "engine_timeout", 413: "engine_refused", 422: "engine_refused" },
  ...{ 429: "engine_overloaded", 500: "engine_bad_reply", 502: "engine_unreachable" },
  ...{ 503: "engine_overloaded", 504: "engine_unreachable" },
};

function refusal(status: string, body: string): Buffer {
  const head = `HTTP/1.1 ${status} No\r\nContent-Type: application/json\r\n`;
  return Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
}

/** A streamed answer with one more event: before the first, in the middle, or before its end. */
function withEvent(whole: Buffer, event: object, place: number): Buffer {
  const bodyAt = whole.indexOf("\r\n\r\n") + 4;
  const head = whole.subarray(0, bodyAt).toString("latin1");
  const text = unchunked(head, whole.subarray(bodyAt).toString("utf8"));
  const events = text.split("\n\n").filter((line) => line !== "");
  events.splice(Math.floor(place * (events.length - 1)), 0, `data: ${JSON.stringify(event)}`);
  const body = events.map((line) => `${line}\n\n`).join("");
  const type = "Content-Type: text/event-stream\r\n";
  const length = Buffer.byteLength(body);
  return Buffer.from(`HTTP/1.1 200 OK\r\n${type}Content-Length: ${length}\r\n\r\n${body}`);
}

type Json = Record<string, unknown>;

/** The answer with one number of one list replaced, or left out where it is `undefined`. */
function edited(
  whole: Buffer,
  way: Way,
  list: "ids" | "logprobs",
  place: number,
  value: unknown,
): Buffer {
  const bodyAt = whole.indexOf("\r\n\r\n") + 4;
  const head = whole.subarray(0, bodyAt).toString("latin1");
  const text = unchunked(head, whole.subarray(bodyAt).toString("utf8"));
  const lines = way.streams ? text.split("\n\n").filter((line) => line.includes("{")) : [text];
  const replies = lines.map((line) => JSON.parse(line.replace(/^data: /, "")) as Json);
  const lists = replies.map((reply) => listOf(reply, way.rung, list));
  const found = lists.find((one) => (one?.length ?? 0) > 0);
  if (!found) throw new Error(`there are no ${list} in ${text}`);
  const at = Math.round(place * (found.length - 1));
  if (value === undefined) found.splice(at, 1);
  else put(found, at, value, way.rung, list);
  const written = replies.map((reply) => JSON.stringify(reply, nan).replaceAll('"NaN!"', "NaN"));
  const body = way.streams
    ? `${written.map((reply) => `data: ${reply}\n\n`).join("")}data: [DONE]\n\n`
    : (written[0] as string);
  const type = way.streams ? "text/event-stream" : "application/json";
  const length = Buffer.byteLength(body);
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n${body}`,
  );
}

const nan = (_key: string, value: unknown) => (Number.isNaN(value) ? "NaN!" : value);

function unchunked(head: string, body: string): string {
  if (!/transfer-encoding: chunked/i.test(head)) return body;
  let text = "";
  for (let at = 0; ; ) {
    const end = body.indexOf("\r\n", at);
    const length = Number.parseInt(body.slice(at, end), 16);
    if (!length) return text;
    text += body.slice(end + 2, end + 2 + length);
    at = end + 2 + length + 2;
  }
}

function listOf(reply: Json, rung: Way["rung"], list: "ids" | "logprobs"): unknown[] | undefined {
  if (rung === "prorl_generate")
    return reply[list === "ids" ? "response_ids" : "logprobs"] as unknown[];
  if (rung === "sglang_generate") {
    const meta = reply.meta_info as Json | undefined;
    return (list === "ids" ? reply.output_ids : meta?.output_token_logprobs) as unknown[];
  }
  const [choice] = reply.choices as Json[];
  const logprobs = choice?.logprobs as Json | undefined;
  if (list === "logprobs") return (logprobs?.content ?? logprobs?.token_logprobs) as unknown[];
  return (rung === "completions_text_ids" ? logprobs?.tokens : choice?.token_ids) as unknown[];
}

function put(found: unknown[], at: number, value: unknown, rung: Way["rung"], list: string): void {
  if (list === "ids") found[at] = rung === "completions_text_ids" ? `token_id:${value}` : value;
  else if (rung === "inference_generate" || rung === "chat_ids")
    (found[at] as Json).logprob = value;
  else if (rung === "sglang_generate") (found[at] as unknown[])[0] = value;
  else found[at] = value;
}

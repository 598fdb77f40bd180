import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { messageTokens } from "../src/compat/prorl/message-tokens.ts";
import { prorlMessages } from "../src/compat/prorl/messages.ts";
import type { Message } from "../src/inference/engine.ts";
import { Conversation } from "../src/inference/tokens/conversation.ts";
import { trajectoryToMsgpack } from "../src/protocol/trajectory-msgpack.ts";
import { trajectoryToProtobuf } from "../src/protocol/trajectory-protobuf.ts";
import { viewTrajectory } from "../src/protocol/trajectory-view.ts";
import type { Trajectory, Turn } from "../src/trajectory/record.ts";
import { BASH, calls, modelOf, result, system, user } from "../test/inference/tokens/models.ts";
import { randomOf } from "../test/inference/tokens/simulated-engine.ts";
import { percentile, print, round } from "./line.ts";

const TURNS = 50;
const TOKENS = 32_768;
/** A third of what an agent's context holds it wrote itself. */
const SAMPLED_SHARE = 1 / 3;
const ROUNDS = 15;
const TARGET = 1 / 20;

/**
 * What a trajectory of 50 turns and 32k tokens weighs in each form, and what it costs to write it, against
 * the messages of ProRL Agent, which repeat the whole prompt in every turn. The text is this repository's,
 * in Qwen3's tokens; the log-probabilities have 32 bits, as engines compute them. ProRL's server compresses nothing and
 * always sends the text, so all that a trainer may ask of ours is shown beside it: all of it, without the text
 * (`?messages=false`), and each with gzip. ProRL's ids without its text are there for comparison.
 */
export async function trajectoryPayload(): Promise<void> {
  const trajectory = await agentTrajectory();
  const tokens = messageTokens(trajectory, true);
  const view = prorlMessages(trajectory, { tokens, endThinking: false });
  const prorl = () =>
    Buffer.from(JSON.stringify({ messages: view.messages, tools: trajectory.tools }));
  const withoutText = view.messages.map((message) => ({ ...message, content: "" }));
  const record = JSON.stringify(trajectory);
  const light = viewTrajectory(record, { messages: false });
  const forms: [string, () => Uint8Array][] = [
    ["ProRL's JSON", prorl],
    ["ProRL's JSON without text", () => Buffer.from(JSON.stringify({ messages: withoutText }))],
    ["JSON", () => Buffer.from(JSON.stringify(trajectory))],
    ["msgpack", () => trajectoryToMsgpack(trajectory)],
    ["protobuf", () => trajectoryToProtobuf(trajectory)],
    ["JSON without messages", () => Buffer.from(JSON.stringify(light))],
    ["msgpack without messages", () => trajectoryToMsgpack(light)],
    ["protobuf without messages", () => trajectoryToProtobuf(light)],
  ];
  const floor = prorl().byteLength;
  for (const [form, encode] of forms) {
    const body = encode();
    const ratio = body.byteLength / floor;
    const against = `${floor} bytes of ProRL's JSON`;
    const goalOf = (size: number) =>
      form.startsWith("msgpack") && { target: "at most 1/20", met: size / floor <= TARGET };
    const bytes = line(`${form}, bytes`, [body.byteLength], "bytes");
    print({ ...bytes, against, ratio: round(ratio), ...goalOf(body.byteLength) });
    const sent = gzipSync(body).byteLength;
    const small = line(`${form} with gzip, bytes`, [sent], "bytes");
    print({ ...small, against, ratio: round(sent / floor), ...goalOf(sent) });
    const timesMs = Array.from({ length: ROUNDS }, () => {
      const startMs = performance.now();
      encode();
      return performance.now() - startMs;
    });
    print(line(`${form}, encode`, timesMs, "ms"));
  }
}

function line(name: string, values: number[], unit: string) {
  const p50 = percentile(values, 0.5);
  const p99 = percentile(values, 0.99);
  return { bench: "trajectory-payload", case: name, n: values.length, p50, p99, unit };
}

async function agentTrajectory(): Promise<Trajectory> {
  const model = await modelOf("qwen3");
  const { tokenizer } = model;
  const source = tokenizer.encode(sourceText());
  const random = randomOf(1);
  let at = 0;
  const text = (tokens: number) => {
    const from = at;
    at += Math.round(tokens);
    return tokenizer.decode(source.slice(from, at));
  };
  const options = { tools: [BASH], now: new Date(0) };
  const begin: Message[] = [system(text(800)), user(text(1200))];
  const conversation = new Conversation(model, begin, options);
  const perTurn = (TOKENS - conversation.prompt().length) / TURNS - 40;
  const { endOfTurn } = model.shape([BASH], {});
  const logprobs: number[] = [];
  const turns: Turn[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const id = `call${String(turn).padStart(5, "0")}`;
    const message = calls(text(perTurn * SAMPLED_SHARE), [id]);
    const [call] = message.tool_calls;
    const written = `{"name": "execute_bash", "arguments": ${call?.function.arguments}}`;
    const said = `${message.content}\n<tool_call>\n${written}\n</tool_call>${endOfTurn}`;
    const sampled = tokenizer.encode(said);
    conversation.sampled(sampled, message);
    for (const _ of sampled) logprobs.push(Math.fround(Math.log(1 - random() * 0.9)));
    turns.push(turnOf(conversation.messages.length - 1, sampled.length));
    if (turn === TURNS - 1) break;
    conversation.add(result(id, text(perTurn * (1 - SAMPLED_SHARE))));
    conversation.prompt();
  }
  const [segment] = conversation.segments;
  if (!segment || conversation.segments.length > 1) throw new Error("it forked");
  const { spans, fork } = segment;
  return {
    ...{ version: 1, job_id: "bench", attempt: 1, token_ids: "exact" },
    segments: [{ ids: [...segment.ids], spans, logprobs, fork }],
    ...{ tools: [BASH], messages: [...conversation.messages], turns, stop_reason: "finish" },
  };
}

function turnOf(message: number, tokens: number): Turn {
  return {
    ...{ message, backend_id: "b1", finish_reason: "tool_calls" },
    ...{ prompt_tokens: 1000, completion_tokens: tokens, started_ms: 1234, engine_ms: 2345.678 },
    ...{
      queue_ms: 1.5,
      waited_ms: 0,
      lost_tokens: 0,
      first_token_ms: 45.25,
      cached_tokens: 960,
      weight_version: "12",
    },
    ...{ weight_spans: [], logprobs_mode: "processed" },
    tools: [{ name: "execute_bash", status: "ok", message: message + 1, duration_ms: 12.345 }],
  };
}

function sourceText(): string {
  const folder = join(import.meta.dir, "../src");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted();
  const code = files.filter((file) => file.endsWith(".ts"));
  return code
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n")
    .slice(0, 250_000);
}

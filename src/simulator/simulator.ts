import { type Fault, FaultSource } from "./faults.ts";
import { nextTurn, type Policy, Unscripted } from "./policy.ts";
import { uniform } from "./random.ts";
import { failure, reply, resetFault, spoiltReply, statusFault } from "./responses.ts";
import {
  type Completion,
  chatRequestSchema,
  countPrompt,
  countSaid,
  cutToTokens,
  modelsBody,
  type SimulatedRequest,
} from "./wire.ts";

export type SimulatorOptions = {
  /** 0, the default, takes a free one. */
  port?: number;
  model?: string;
  /** Units: tokens, prompt and answer together. */
  maxModelLen?: number;
  policy: Policy;
  /**
   * A call takes `latencyMs`, up to `jitterMs` more, and `msPerToken` for each token of the answer.
   */
  latencyMs?: number;
  jitterMs?: number;
  msPerToken?: number;
  /** Of jitter and faults; the policy goes by the seed of each request. */
  seed?: number;
  faults?: Fault[];
};

/** Chat requests since the start. `aborted`: the caller went away before the answer. */
export type RequestCounts = { total: number; inFlight: number; aborted: number; faults: number };

export type Simulator = AsyncDisposable & {
  /** Base address with `/v1`. */
  url: string;
  port: number;
  requests: Readonly<RequestCounts>;
  stop(): Promise<void>;
};

const DEFAULTS = {
  port: 0,
  model: "simulated",
  maxModelLen: 32_768,
  latencyMs: 0,
  jitterMs: 0,
  msPerToken: 0,
  seed: 0,
  faults: [],
};

type Engine = Required<SimulatorOptions> & { requests: RequestCounts; faultSource: FaultSource };

/** A simulated inference engine on 127.0.0.1 that speaks OpenAI's chat protocol as vLLM does. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const settings = { ...DEFAULTS, ...options };
  const requests: RequestCounts = { total: 0, inFlight: 0, aborted: 0, faults: 0 };
  const faultSource = new FaultSource(settings.faults, settings.seed);
  const engine: Engine = { ...settings, requests, faultSource };
  const { model, maxModelLen } = settings;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: settings.port,
    idleTimeout: 0,
    routes: {
      "/health": () => new Response(null, { status: 200 }),
      "/v1/models": () => Response.json(modelsBody(model, maxModelLen)),
      "/v1/chat/completions": { POST: (request) => countedChat(engine, request) },
    },
    fetch: ({ url, method }) => failure(404, `${method} ${new URL(url).pathname} is not served`),
  });
  const port = server.port as number;
  const stop = () => server.stop(true);
  const url = `http://127.0.0.1:${port}/v1`;
  return { url, port, requests, stop, [Symbol.asyncDispose]: stop };
}

async function countedChat(engine: Engine, request: Request): Promise<Response> {
  const { requests } = engine;
  const number = requests.total++;
  requests.inFlight++;
  try {
    return await chat(engine, request, number);
  } finally {
    requests.inFlight--;
    if (request.signal.aborted) requests.aborted++;
  }
}

async function chat(engine: Engine, http: Request, number: number): Promise<Response> {
  const { signal } = http;
  let body: unknown;
  try {
    body = await http.json();
  } catch (error) {
    return failure(400, `the body is not JSON: ${(error as Error).message}`);
  }
  const parsed = chatRequestSchema.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const param = issue?.path.join(".") ?? null;
    return failure(400, `${param}: ${issue?.message}`, param);
  }
  const request = parsed.data;
  const turn = request.messages.filter(({ role }) => role === "assistant").length;
  const fault = engine.faultSource.next(number, turn);
  if (fault) engine.requests.faults++;
  if (fault?.kind === "status") return statusFault(fault);
  if (fault?.kind === "reset") return resetFault();
  if (fault?.kind === "stall") await wait(Number.POSITIVE_INFINITY, signal);
  try {
    const id = http.headers.get("x-request-id") ?? String(number);
    const { completion, delayMs } = complete(engine, request, turn, `chatcmpl-${id}`);
    await wait(delayMs + latencyOf(engine, completion, number), signal);
    return fault ? spoiltReply(fault, completion) : reply(completion, request);
  } catch (error) {
    if (error instanceof Refused) return failure(error.status, error.message, error.param);
    if (error instanceof Unscripted) return failure(400, error.message);
    throw error;
  }
}

class Refused extends Error {
  readonly status: number;
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

/** @throws Refused, Unscripted */
function complete(engine: Engine, request: SimulatedRequest, turn: number, id: string) {
  const { model, maxModelLen } = engine;
  if (request.model !== model) {
    throw new Refused(404, `The model \`${request.model}\` does not exist.`, "model");
  }
  const promptTokens = countPrompt(request.messages);
  const asked = request.max_completion_tokens ?? request.max_tokens;
  const maxTokens = asked ?? maxModelLen - promptTokens;
  if (promptTokens >= maxModelLen || promptTokens + maxTokens > maxModelLen) {
    const limit = `This model's maximum context length is ${maxModelLen} tokens.`;
    const had = `However, you requested ${asked ?? 0} output tokens and your prompt contains`;
    throw new Refused(400, `${limit} ${had} ${promptTokens} input tokens.`, "input_tokens");
  }
  const { said, delayMs } = nextTurn(engine.policy, request, turn);
  const cut = cutToTokens(said, maxTokens);
  const completion: Completion = { id, model, said: cut, promptTokens, turn };
  return { completion, delayMs };
}

function latencyOf(engine: Engine, { said }: Completion, number: number): number {
  const { latencyMs, jitterMs, msPerToken, seed } = engine;
  return latencyMs + jitterMs * uniform(seed, -1, number) + msPerToken * countSaid(said);
}

/** Ends early when the caller goes away; what is then returned reaches nobody. */
function wait(ms: number, signal: AbortSignal): Promise<void> | undefined {
  if (ms === 0 || signal.aborted) return;
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = Number.isFinite(ms) ? setTimeout(done, ms) : undefined;
    signal.addEventListener("abort", done, { once: true });
  });
}

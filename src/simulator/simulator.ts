import { SimulatedEngine } from "./engine.ts";
import { engineClock } from "./engine-clock.ts";
import { type EngineModel, INSTANT } from "./engine-model.ts";
import { type Fault, FaultSource } from "./faults.ts";
import { failure, type RequestCounts } from "./generation.ts";
import type { LogprobsMode } from "./logprobs.ts";
import type { Policy } from "./policy.ts";
import { serveRoutes } from "./routes.ts";
import { byteTokenizer, type SimulatedTokenizer } from "./tokenizer.ts";
import type { SimulatedWire } from "./wires/format.ts";

/** How fast it is is an `EngineModel`, which answers at once where nothing else is said. */
export type SimulatorOptions = Partial<EngineModel> & {
  /** 0, the default, takes a free one. */
  port?: number;
  model?: string;
  /** Units: tokens, prompt and answer together. At most what the memory holds, unless it is given. */
  maxModelLen?: number;
  policy: Policy;
  /** The byte tokenizer by default; a model's own must have ChatML's special tokens. */
  tokenizer?: SimulatedTokenizer;
  /** Whose routes are served; `all` by default. */
  wire?: SimulatedWire;
  /**
   * A call waits `latencyMs`, and up to `jitterMs` more, before the engine has it. With `latencySigma`
   * it is the median of a lognormal distribution.
   */
  latencyMs?: number;
  latencySigma?: number;
  jitterMs?: number;
  /** How many times faster than real time everything goes that takes it time. */
  speed?: number;
  /** Of jitter, faults and log-probabilities; the policy goes by the seed of each request. */
  seed?: number;
  /** Of which distribution log-probabilities are; by default as the engine whose route is called has them. */
  logprobsMode?: LogprobsMode | undefined;
  faults?: Fault[];
};

export type Simulator = AsyncDisposable & {
  /** Base address with `/v1`. */
  url: string;
  port: number;
  /** Calls of the model since the start. `aborted`: the caller went away before the answer. */
  requests: Readonly<RequestCounts>;
  stop(): Promise<void>;
};

const MAX_MODEL_LEN = 131_072;

const DEFAULTS = {
  port: 0,
  model: "simulated",
  wire: "all",
  tokenizer: byteTokenizer,
  latencyMs: 0,
  latencySigma: 0,
  jitterMs: 0,
  ...INSTANT,
  speed: 1,
  seed: 0,
  faults: [],
} as const;

/** A simulated inference engine on 127.0.0.1 that speaks the wire formats of real ones. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const maxModelLen = Math.min(MAX_MODEL_LEN, options.kvTokens ?? INSTANT.kvTokens);
  const settings = { ...DEFAULTS, maxModelLen, ...options };
  const { seed, faults, speed } = settings;
  const requests: RequestCounts = { total: 0, inFlight: 0, aborted: 0, faults: 0 };
  const serving = {
    ...settings,
    engine: new SimulatedEngine(seed, settings, engineClock(speed)),
    faultSource: new FaultSource([...faults], seed),
    requests,
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: settings.port,
    idleTimeout: 0,
    routes: serveRoutes(serving, settings.wire),
    fetch: ({ url, method }) => failure(404, `${method} ${new URL(url).pathname} is not served`),
  });
  const port = server.port as number;
  const stop = () => server.stop(true);
  const url = `http://127.0.0.1:${port}/v1`;
  return { url, port, requests, stop, [Symbol.asyncDispose]: stop };
}

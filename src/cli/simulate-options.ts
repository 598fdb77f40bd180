import { basename } from "node:path";
import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { readModelFolder } from "../inference/tokens/model-folder.ts";
import { Tokenizer } from "../inference/tokens/tokenizer.ts";
import { type EngineModel, INSTANT } from "../simulator/engine-model.ts";
import { parseFault } from "../simulator/faults.ts";
import { LOGPROBS_MODES } from "../simulator/logprobs.ts";
import { type Policy, parsePolicy } from "../simulator/policy.ts";
import { presetOf } from "../simulator/presets.ts";
import type { SimulatorOptions } from "../simulator/simulator.ts";
import type { SimulatedTokenizer } from "../simulator/tokenizer.ts";
import { WIRES } from "../simulator/wires/format.ts";
import { type parseFlags, refuseIdle, UsageError } from "./flags.ts";
import { plainIssue } from "./plain-issue.ts";

export const SIMULATE_OPTIONS = {
  policy: { type: "string" },
  echo: { type: "boolean" },
  port: { type: "string" },
  "port-file": { type: "string" },
  "model-dir": { type: "string" },
  tokenizer: { type: "string" },
  model: { type: "string" },
  "max-model-len": { type: "string" },
  "latency-ms": { type: "string" },
  "jitter-ms": { type: "string" },
  preset: { type: "string" },
  speed: { type: "string" },
  "prefill-tokens-per-s": { type: "string" },
  "ms-per-token": { type: "string" },
  "ms-per-10k-context": { type: "string" },
  "max-batch": { type: "string" },
  "kv-tokens": { type: "string" },
  wire: { type: "string" },
  turns: { type: "string" },
  tokens: { type: "string" },
  call: { type: "string" },
  seed: { type: "string" },
  "logprobs-mode": { type: "string" },
  fault: { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

const number = z
  .string()
  .regex(/^-?(\d+|\d*\.\d+)$/, "must be a number")
  .transform(Number);
const whole = number.pipe(z.int());
const positiveMs = number.pipe(z.number().min(0));
const atLeastOne = number.pipe(z.int().min(1));

const presetSchema = z.string().transform((name, context) => {
  try {
    return presetOf(name);
  } catch (error) {
    context.addIssue({ code: "custom", message: (error as Error).message });
    return z.NEVER;
  }
});

/** `8` or `8,0.5`. */
const spread = z
  .string()
  .regex(/^\d+(\.\d+)?(,\d+(\.\d+)?)?$/, "must be a median, or a median and a sigma: 8,0.5")
  .transform((text) => {
    const [median = 1, sigma = 0] = text.split(",").map(Number);
    return { median, sigma };
  });

const callSchema = z.string().transform((text, context) => {
  const parsed = calledSchema.safeParse(parseJson(text));
  if (parsed.success) {
    return { name: parsed.data.name, arguments: JSON.stringify(parsed.data.arguments) };
  }
  context.addIssue({ code: "custom", message: 'must be {"name": "…", "arguments": {…}}' });
  return z.NEVER;
});

const calledSchema = z.strictObject({
  name: z.string().min(1),
  arguments: z.record(z.string(), z.json()),
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const valuesSchema = z.object({
  port: number.pipe(z.int().min(0).max(65_535)).default(0),
  model: z.string().min(1).default("simulated"),
  "max-model-len": atLeastOne.optional(),
  "latency-ms": spread.default({ median: 0, sigma: 0 }),
  "jitter-ms": positiveMs.default(0),
  preset: presetSchema.optional(),
  speed: number.pipe(z.number().min(0.01).max(1_000)).default(1),
  "prefill-tokens-per-s": number.pipe(z.number().gt(0)).optional(),
  "ms-per-token": positiveMs.optional(),
  "ms-per-10k-context": positiveMs.optional(),
  "max-batch": atLeastOne.optional(),
  "kv-tokens": number.pipe(z.int().min(256)).optional(),
  wire: z.enum(WIRES).default("all"),
  turns: spread.default({ median: 8, sigma: 0.5 }),
  tokens: spread.default({ median: 200, sigma: 0.5 }),
  call: callSchema.default({ name: "execute_bash", arguments: '{"command":"true"}' }),
  seed: whole.default(0),
  "logprobs-mode": z.enum(LOGPROBS_MODES).optional(),
  fault: z.array(z.string()).default([]),
});

type Given = z.output<typeof valuesSchema>;
export type SimulateValues = ReturnType<typeof parseFlags<typeof SIMULATE_OPTIONS>>["values"];

/** @throws UsageError */
export async function simulatorOptions(values: SimulateValues): Promise<SimulatorOptions> {
  const parsed = valuesSchema.safeParse(values);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new UsageError(`--${String(issue?.path[0])}: ${plainIssue(issue)}`);
  }
  const given = parsed.data;
  const maxModelLen = given["max-model-len"] ?? presetLimit(given);
  return {
    port: given.port,
    model: given.model,
    ...(maxModelLen !== undefined && { maxModelLen }),
    policy: await readPolicy(values, given),
    wire: given.wire,
    ...(values.tokenizer !== undefined && { tokenizer: await realTokenizer(values.tokenizer) }),
    latencyMs: given["latency-ms"].median,
    latencySigma: given["latency-ms"].sigma,
    jitterMs: given["jitter-ms"],
    ...engineModel(given),
    speed: given.speed,
    seed: given.seed,
    logprobsMode: given["logprobs-mode"],
    faults: given.fault.map((text) => asUsage(() => parseFault(text))),
  };
}

/** A memory that is given is the limit, where it is smaller. */
function presetLimit({ preset, "kv-tokens": kvTokens }: Given): number | undefined {
  return preset && Math.min(preset.maxModelLen, kvTokens ?? preset.kvTokens);
}

/** The preset's figures, but those that are given. */
function engineModel(given: Given): EngineModel {
  const { preset = INSTANT, "ms-per-10k-context": contextMs } = given;
  return {
    weightsMs: given["ms-per-token"] ?? preset.weightsMs,
    contextMs: contextMs === undefined ? preset.contextMs : contextMs / 10_000,
    prefillTokensPerS: given["prefill-tokens-per-s"] ?? preset.prefillTokensPerS,
    maxBatch: given["max-batch"] ?? preset.maxBatch,
    kvTokens: given["kv-tokens"] ?? preset.kvTokens,
  };
}

/** The tokenizer of a model folder, for engines whose ids are to be a real model's. @throws UsageError */
async function realTokenizer(path: string): Promise<SimulatedTokenizer> {
  const folder = await readModelFolder(path).catch((error) => {
    throw error instanceof ServiceError ? new UsageError(`--tokenizer: ${error.message}`) : error;
  });
  const tokenizer = asUsage(() => new Tokenizer(folder));
  const specialId = (text: string) => {
    const id = tokenizer.addedId(text);
    if (id === undefined) throw new UsageError(`--tokenizer: ${path} has no token ${text}`);
    return id;
  };
  for (const text of ["<|im_start|>", "<|im_end|>"]) specialId(text);
  return {
    vocabSize: tokenizer.size,
    encode: (text) => tokenizer.encode(text),
    decode: (ids) => tokenizer.decode(ids),
    specialId,
  };
}

async function readPolicy(values: SimulateValues, given: Given): Promise<Policy> {
  const { policy, echo } = values;
  if ((policy === undefined) === !echo) throw new UsageError("give --policy FILE or --echo");
  const random = { flags: ["turns", "tokens", "call"], when: policy !== "random" };
  refuseIdle(values, [{ ...random, why: "is for --policy random" }]);
  if (policy === undefined) return { kind: "echo" };
  if (policy === "random") {
    const { seed, turns, tokens, call } = given;
    return { kind: "random", seed, turns, tokens, call };
  }
  let text: string;
  try {
    text = await Bun.file(policy).text();
  } catch (error) {
    throw new UsageError(`--policy: ${(error as Error).message}`);
  }
  return asUsage(() => parsePolicy(text, basename(policy)));
}

/** What the simulator finds wrong with its options is wrong on the command line. */
function asUsage<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof ServiceError) throw new UsageError(error.message);
    throw error;
  }
}

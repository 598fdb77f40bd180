import type { EngineModel } from "./engine-model.ts";

type Gpu = { bytes: number; bytesPerS: number; flopPerS: number };

/** By NVIDIA's data sheets, of the SXM form: memory, its bandwidth, and dense bf16. */
const GPUS: Record<string, Gpu> = {
  a100: { bytes: 80e9, bytesPerS: 2.039e12, flopPerS: 312e12 },
  h100: { bytes: 80e9, bytesPerS: 3.35e12, flopPerS: 989e12 },
  h200: { bytes: 141e9, bytesPerS: 4.8e12, flopPerS: 989e12 },
  b200: { bytes: 180e9, bytesPerS: 8e12, flopPerS: 2_250e12 },
};

type Model = {
  parameters: number;
  /** Of a mixture of experts: what computes a token. All are read where a step has some dozens of requests. */
  activeParameters?: number;
  layers: number;
  kvHeads: number;
  headDim: number;
  /** The longest context that it is made for. Units: tokens. */
  context: number;
};

/** By their model cards and `config.json`. Weights, keys and values are bf16. */
const QWEN3 = { kvHeads: 8, headDim: 128, context: 40_960 };
const LLAMA_3_1 = { kvHeads: 8, headDim: 128, context: 131_072 };

const MODELS: Record<string, Model> = {
  "qwen3-4b": { parameters: 4e9, layers: 36, ...QWEN3 },
  "qwen3-8b": { parameters: 8.2e9, layers: 36, ...QWEN3 },
  "qwen3-14b": { parameters: 14.8e9, layers: 40, ...QWEN3 },
  "qwen3-32b": { parameters: 32.8e9, layers: 64, ...QWEN3 },
  "qwen3-30b-a3b": {
    ...{ parameters: 30.5e9, activeParameters: 3.3e9, layers: 48 },
    ...{ ...QWEN3, kvHeads: 4 },
  },
  "llama-3.1-8b": { parameters: 8e9, layers: 32, ...LLAMA_3_1 },
  "llama-3.1-70b": { parameters: 70.6e9, layers: 80, ...LLAMA_3_1 },
};

/** Tuned engines reach 70 to 85 % of the bandwidth while they decode, and half of the arithmetic in prefill. */
const REACHED = { bandwidth: 0.8, arithmetic: 0.5 };
/** vLLM's defaults: its share of the memory, what it takes beside weights and cache on each GPU, requests in a step. */
const VLLM = { memoryShare: 0.9, otherBytes: 2.5e9, maxSequences: 128 };
const BYTES_PER_NUMBER = 2;
/** With tensor parallelism each layer ends with two sums over all GPUs; a small one takes about so long over NVLink. */
const SUMS_PER_LAYER = 2;
const SUM_MS = 0.01;

const NAME = /^(?<model>[^@]+)@(?<gpu>[a-z0-9]+?)(x(?<count>[1-8]))?$/;

export const PRESET_NAMES = { models: Object.keys(MODELS), gpus: Object.keys(GPUS) };

/**
 * The engine of a name such as `qwen3-14b@h100` or `llama-3.1-70b@h100x4`, computed from its memory's bandwidth and size:
 * decoding reads the weights and the contexts, and prefill is arithmetic. Real engines differ by some ten or twenty per
 * cent, so who has one measures it and gives its own figures.
 *
 * @throws Error that says what is wrong with the name, or by how much the model is too large.
 */
export function presetOf(name: string): EngineModel & { maxModelLen: number } {
  const groups = NAME.exec(name)?.groups ?? {};
  const model = MODELS[groups.model ?? ""];
  const gpu = GPUS[groups.gpu ?? ""];
  const count = Number(groups.count ?? 1);
  if (!model || !gpu) {
    const { models, gpus } = PRESET_NAMES;
    throw new Error(
      `must be MODEL@GPU, or MODEL@GPUxN for up to 8 in tensor parallel; ` +
        `models: ${models.join(", ")}; GPUs: ${gpus.join(", ")}`,
    );
  }
  const weightBytes = BYTES_PER_NUMBER * model.parameters;
  const contextBytes = 2 * BYTES_PER_NUMBER * model.layers * model.kvHeads * model.headDim;
  const usable = count * (VLLM.memoryShare * gpu.bytes - VLLM.otherBytes);
  const kvTokens = Math.floor((usable - weightBytes) / contextBytes);
  if (kvTokens <= 0) {
    const gigabytes = (bytes: number) => `${Math.round(bytes / 1e9)} GB`;
    throw new Error(
      `${groups.model} has ${gigabytes(weightBytes)} of weights, ` +
        `more than the ${gigabytes(usable)} that ${count} ${groups.gpu} have for them`,
    );
  }
  const bytesPerMs = (count * REACHED.bandwidth * gpu.bytesPerS) / 1000;
  const flopPerToken = 2 * (model.activeParameters ?? model.parameters);
  const sumsMs = count > 1 ? SUMS_PER_LAYER * model.layers * SUM_MS : 0;
  return {
    weightsMs: weightBytes / bytesPerMs + sumsMs,
    contextMs: contextBytes / bytesPerMs,
    prefillTokensPerS: (count * REACHED.arithmetic * gpu.flopPerS) / flopPerToken,
    kvTokens,
    maxBatch: VLLM.maxSequences,
    maxModelLen: Math.min(model.context, kvTokens),
  };
}

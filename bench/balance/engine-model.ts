/** How fast a virtual engine is, and what it can hold. */
export type EngineModel = {
  /** A decoding step reads the weights once, however many requests it makes a token of. Units: milliseconds. */
  weightsMs: number;
  /** And the keys and values of every context in the batch. Units: milliseconds for a token of context. */
  contextMs: number;
  /** Of tokens that are in no cache. While it computes them, it decodes nothing. */
  prefillTokensPerS: number;
  /** Memory for keys and values. Units: tokens. */
  kvTokens: number;
  /** Requests in one step at most. */
  maxBatch: number;
};

/** NVIDIA's data sheet of the H100 SXM: memory, its bandwidth, and dense bf16. */
const GPU = { bytes: 80e9, bytesPerS: 3.35e12, flopPerS: 989e12 };
/** Tuned engines reach 70 to 85 % of the bandwidth while they decode, and half of the arithmetic in prefill. */
const REACHED = { bandwidth: 0.8, arithmetic: 0.5 };
/** Qwen3-14B in bf16 by its model card and config.json: the size that ProRL's ablation of balancing was done with. */
const MODEL = { parameters: 14.8e9, layers: 40, kvHeads: 8, headDim: 128 };
/** vLLM's defaults: its share of the memory, what it takes beside weights and cache, requests in a step. */
const VLLM = { memoryShare: 0.9, otherBytes: 2.5e9, maxSequences: 128 };

const weightBytes = 2 * MODEL.parameters;
const contextBytes = 2 * 2 * MODEL.layers * MODEL.kvHeads * MODEL.headDim;
const bytesPerMs = (REACHED.bandwidth * GPU.bytesPerS) / 1000;
const kvBytes = VLLM.memoryShare * GPU.bytes - weightBytes - VLLM.otherBytes;

/** 11 ms for the weights, 0.6 ms for 10,000 tokens of context, 17,000 tokens/s of prefill, room for 243,000. */
export const QWEN3_14B_ON_H100: EngineModel = {
  weightsMs: weightBytes / bytesPerMs,
  contextMs: contextBytes / bytesPerMs,
  prefillTokensPerS: (REACHED.arithmetic * GPU.flopPerS) / (2 * MODEL.parameters),
  kvTokens: Math.floor(kvBytes / contextBytes),
  maxBatch: VLLM.maxSequences,
};

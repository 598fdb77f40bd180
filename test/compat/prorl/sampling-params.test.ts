import { describe, expect, test } from "bun:test";
import { readSamplingParams } from "../../../src/compat/prorl/sampling-params.ts";
import { ServiceError } from "../../../src/errors.ts";

function refusal(params: unknown) {
  try {
    readSamplingParams(params);
  } catch (error) {
    if (error instanceof ServiceError) return [error.code, error.field];
    throw error;
  }
  return null;
}

describe("the sampling parameters of ProRL's clients", () => {
  test("have upstream's defaults where nothing is said, and null says nothing", () => {
    const expected = {
      maxIterations: 2,
      strictLoopDetector: false,
      ensureThinkingEndProperly: false,
      isReasoningTask: false,
      isInference: false,
      model: null,
      apiKey: null,
      temperature: 0,
      topP: 1,
      topK: null,
      seed: null,
      maxOutputTokens: null,
      maxModelLen: 32_768,
      tokenizer: null,
      enableThinking: true,
    };
    expect(readSamplingParams(undefined)).toEqual(expected);
    expect(readSamplingParams({ temperature: null, seed: null, model: null, api_key: "" })).toEqual(
      expected,
    );
  });

  test("name the model as the engine knows it", () => {
    expect(readSamplingParams({ model: "hosted_vllm/Qwen/Qwen3-8B" }).model).toBe("Qwen/Qwen3-8B");
    expect(readSamplingParams({ model: "Qwen3-8B" }).model).toBe("Qwen3-8B");
  });

  test("take what upstream's clients send, and what has no meaning here", () => {
    const sent = {
      ...{ model: "hosted_vllm/m", api_key: "mykey", modify_params: false, log_completions: false },
      ...{ native_tool_calling: true, temperature: 0.6, top_p: 0.9, max_iterations: 35 },
      ...{ token_level_generation: true, custom_tokenizer: "Qwen/Qwen3-8B", num_retries: 4 },
      ...{ max_output_tokens: 4096, max_model_len: 32_768, timeout: 30, drop_params: true },
    };
    expect(readSamplingParams(sent)).toMatchObject({
      maxIterations: 35,
      tokenizer: "Qwen/Qwen3-8B",
      apiKey: "mykey",
    });
  });

  test("are refused by name where they are unknown or of the wrong kind", () => {
    expect(refusal({ temprature: 1 })).toEqual(["unknown_field", "sampling_params.temprature"]);
    expect(refusal({ top_p: "high" })).toEqual(["invalid_field", "sampling_params.top_p"]);
  });

  test("need a tokenizer in token mode", () => {
    expect(refusal({ token_level_generation: true })).toEqual([
      "invalid_field",
      "sampling_params.custom_tokenizer",
    ]);
    expect(readSamplingParams({ custom_tokenizer: "x" }).tokenizer).toBeNull();
  });
});

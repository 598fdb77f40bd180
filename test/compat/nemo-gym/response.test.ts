import { describe, expect, test } from "bun:test";
import { verifyResponse } from "../../../src/compat/nemo-gym/verify-response.ts";
import type { RolloutView } from "../../../src/protocol/view.ts";
import type { TokenSegment, Trajectory, Turn } from "../../../src/trajectory/record.ts";
import { failedView, viewOf } from "../../cli/views.ts";

const ROW = { expected_answer: "4", _ng_task_index: 2 };

const call = { id: "c1", type: "function" as const, function: { name: "f", arguments: "{}" } };

/** Two calls: ids 1 2 are the prompt, 3 4 the first call, 5 its observation, 6 the second. */
const SEGMENT: TokenSegment = {
  ids: [1, 2, 3, 4, 5, 6],
  spans: [
    { kind: "prompt", start: 0, end: 2, mask: 0 },
    { kind: "sampled", start: 2, end: 4, mask: 1, turn: 0 },
    { kind: "observation", start: 4, end: 5, mask: 0 },
    { kind: "sampled", start: 5, end: 6, mask: 1, turn: 1 },
  ],
  logprobs: [-0.3, -0.4, -0.6],
  fork: null,
};

const turnAt = (message: number) =>
  ({ message, prompt_tokens: 2, completion_tokens: 2, cached_tokens: null }) as Turn;

const TRAJECTORY: Trajectory = {
  version: 1,
  job_id: "j",
  attempt: 1,
  token_ids: "exact",
  segments: [SEGMENT],
  tools: [],
  messages: [
    { role: "user", content: "2+2?" },
    { role: "assistant", content: "Let me see.", tool_calls: [call] },
    { role: "tool", content: "4", tool_call_id: "c1" },
    { role: "assistant", content: "", reasoning_content: "Fine." },
  ],
  turns: [turnAt(1), turnAt(3)],
  stop_reason: "finish",
};

const answer = (changes: Partial<RolloutView>, trajectory: Trajectory | null = TRAJECTORY) =>
  verifyResponse(ROW, viewOf("j", { turns: 2, ...changes }), trajectory, "m");

const broken = (segment: Partial<TokenSegment>) =>
  answer({}, { ...TRAJECTORY, segments: [{ ...SEGMENT, ...segment }] });

const tokensOf = ({ response }: ReturnType<typeof answer>) =>
  response.output.flatMap(({ prompt_token_ids, generation_token_ids, generation_log_probs }) =>
    prompt_token_ids ? [[prompt_token_ids, generation_token_ids, generation_log_probs]] : [],
  );

describe("an answer to NeMo Gym", () => {
  test("has the conversation behind the prompt, with each call's tokens on its last item", () => {
    const { response, ...rest } = answer({ stop_reason: "finish" });
    expect(rest).toMatchObject({
      ...ROW,
      reward: 1,
      resolved: 1,
      num_turns: 2,
      mask_sample: false,
    });
    const types: string[] = response.output.map(({ type }) => type);
    expect(types).toEqual([
      ...["message", "function_call", "function_call_output", "reasoning", "message"],
    ]);
    expect(response.output.findIndex(({ prompt_token_ids }) => prompt_token_ids)).toBe(1);
    expect(tokensOf(answer({}))).toEqual([
      [
        [1, 2],
        [3, 4],
        [-0.3, -0.4],
      ],
      [[1, 2, 3, 4, 5], [6], [-0.6]],
    ]);
    expect(response.usage).toMatchObject({ input_tokens: 4, output_tokens: 4, total_tokens: 8 });
  });

  test("never has arrays that a trainer's assertion would end its batch on", () => {
    const nan = broken({ logprobs: [-0.3, -0.4, Number.NaN] });
    expect(tokensOf(nan)).toEqual([
      [
        [1, 2],
        [3, 4],
        [-0.3, -0.4],
      ],
    ]);
    expect(nan.mask_sample).toBe(true);
    const none = broken({ logprobs: null });
    expect([tokensOf(none), none.mask_sample]).toEqual([[], true]);
    const forked = answer(
      {},
      { ...TRAJECTORY, segments: [{ ...SEGMENT, spans: SEGMENT.spans.slice(0, 2) }, SEGMENT] },
    );
    expect([tokensOf(forked).length, forked.mask_sample]).toEqual([1, true]);
  });

  test("is a failure of its class, masked, where there is no verdict", () => {
    const failed = failedView("j");
    const { reward, mask_sample, _ng_failure_class, _ng_failure_terminal } = answer(failed);
    expect([reward, mask_sample, _ng_failure_class]).toEqual([0, true, "engine_timeout"]);
    expect(_ng_failure_terminal).toBeUndefined();
    const error = { ...failed.error, retryable: false } as NonNullable<RolloutView["error"]>;
    expect(answer({ ...failed, error })._ng_failure_terminal).toBe(true);
    const cancelled = answer({ ...failed, state: "cancelled" });
    expect([cancelled._ng_no_persist, cancelled._ng_failure_class]).toEqual([true, undefined]);
  });

  test("of a policy that ran out of its budget is masked, and no failure", () => {
    const cut = answer({ stop_reason: "max_turns", reward: 1 });
    expect([cut.mask_sample, cut._ng_failure_class]).toEqual([true, undefined]);
    const error = { ...failedView("j").error, code: "oom", boundary: "policy" } as never;
    const memory = answer({ ...failedView("j"), error });
    expect([memory.mask_sample, memory._ng_failure_class]).toEqual([true, undefined]);
  });

  test("has the same metrics whatever happened, because trainers take their names from the first", () => {
    const metrics = (one: ReturnType<typeof answer>) =>
      Object.entries(one).flatMap(([key, value]) => {
        const counts = typeof value === "number" || typeof value === "boolean";
        return counts && !key.startsWith("_ng") ? [key] : [];
      });
    expect(metrics(answer(failedView("j"), null)).sort()).toEqual(metrics(answer({})).sort());
  });
});

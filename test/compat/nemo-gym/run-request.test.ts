import { describe, expect, test } from "bun:test";
import { readRunRequest } from "../../../src/compat/nemo-gym/run-request.ts";
import { Runs } from "../../../src/compat/nemo-gym/runs.ts";
import { ServiceError } from "../../../src/errors.ts";
import { waitFor } from "../../support/wait-for.ts";

const input = [
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "input_text", text: "2+2? Answer in \\boxed{}." }] },
];

const NAMED = { id: "r", labels: { a: "b" } };

const refused = (body: unknown) => {
  try {
    readRunRequest(body, NAMED);
  } catch (error) {
    if (error instanceof ServiceError) return [error.code, error.field];
    throw error;
  }
  return null;
};

describe("a row of NeMo Gym's datasets", () => {
  test("is rolled out with its own messages and the caller's sampling", () => {
    const params = { input, temperature: 0.7, top_p: 0.9, max_output_tokens: 64, metadata: {} };
    const body = { responses_create_params: params, expected_answer: "4", _ng_task_index: 0 };
    expect(readRunRequest(body, NAMED).rollout).toEqual({
      id: "r",
      labels: { a: "b" },
      instance: {
        ...body,
        prompt: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "2+2? Answer in \\boxed{}." },
        ],
        data_source: "reasoning",
        verifier: "math",
        reward_model: { ground_truth: "4" },
      },
      sampling: { temperature: 0.7, top_p: 0.9, max_tokens: 64 },
      chat: { history: "keep" },
    });
  });

  test("is scored by the verifier that its fields are for", () => {
    const verifierOf = (fields: object) => {
      const body = { responses_create_params: { input: "Go: \\boxed{}" }, ...fields };
      const { instance } = readRunRequest(body, NAMED).rollout;
      return [instance.data_source, instance.verifier];
    };
    const tests = { unit_tests: { inputs: ["1"], outputs: ["2"] } };
    expect(verifierOf({ verifier_metadata: tests })).toEqual(["reasoning", "code"]);
    const choice = { options: [{ A: "1" }], expected_answer: "A", grading_mode: "lenient_boxed" };
    expect(verifierOf(choice)).toEqual(["reasoning", "choice"]);
    expect(verifierOf({ instruction_id_list: ["x"] })).toEqual(["reasoning", "instructions"]);
    expect(verifierOf({ expected_answers: [] })).toEqual(["reasoning", "tool_calls"]);
    const swe = { metadata: { instance_dict: '{"instance_id":"a__b-1"}' } };
    expect(verifierOf(swe)).toEqual(["swebench", undefined]);
    const text = { responses_create_params: { input: "Go." }, metadata: { instance_dict: "{" } };
    expect(refused(text)).toEqual(["invalid_field", "metadata.instance_dict"]);
  });

  test("of SWE-bench's is one in its own fields or as text, and keeps the prompt of its kind", () => {
    const fields = { instance_id: "a__b-1", problem_statement: "Broken.", repo: "a/b" };
    const instance = { ...fields, data_source: "swebench" };
    const rolloutOf = (input: unknown, metadata: object, more: object = {}) =>
      readRunRequest({ responses_create_params: { input, metadata }, ...more }, NAMED).rollout;
    const packed = { instance_id: "a__b-1", instance_dict: JSON.stringify(fields) };
    for (const rollout of [
      rolloutOf([], packed),
      rolloutOf([], packed, fields),
      rolloutOf([], {}, fields),
      rolloutOf("Broken.\n", {}, fields),
    ]) {
      expect([rollout.instance, rollout.agent]).toEqual([instance, undefined]);
    }
    const asked = rolloutOf("Mend this: Broken.", {}, fields);
    expect(asked.agent?.user_prompt).toBe("Mend this: Broken.");
  });

  test("that names its data_source is an instance as it stands", () => {
    const body = { responses_create_params: { input: "Go." }, data_source: "echo", reward: 0.5 };
    expect(readRunRequest(body, NAMED).rollout.instance).toEqual(body);
  });

  test("is refused by name where it can't be understood", () => {
    expect(refused({})).toEqual(["invalid_field", "responses_create_params"]);
    const named = { verifier_type: "math_with_judge", expected_answer: "4" };
    expect(refused({ responses_create_params: { input: [] }, ...named })).toEqual([
      "invalid_field",
      "responses_create_params.input",
    ]);
    expect(refused({ responses_create_params: { input: "Go." } })).toEqual([
      "unknown_task_kind",
      "instance",
    ]);
  });
});

describe("a rollout that lost its client", () => {
  test("is taken over by the same body, once, and each further one is a new sample", () => {
    const runs = new Runs(60_000, () => {});
    const { run } = runs.enter("sha");
    const beside = runs.enter("sha");
    expect([beside.adopted, beside.run.rolloutId === run.rolloutId]).toEqual([false, false]);
    runs.orphan(run);
    expect(runs.enter("sha")).toEqual({ run, adopted: true });
    expect(runs.enter("sha").adopted).toBe(false);
  });

  test("is cancelled when nobody comes back for it", async () => {
    const cancelled: string[] = [];
    const runs = new Runs(1, (id) => cancelled.push(id));
    const { run } = runs.enter("sha");
    runs.orphan(run);
    await waitFor(() => cancelled.length > 0, "the cancel");
    expect(cancelled).toEqual([run.rolloutId]);
    expect(runs.enter("sha").adopted).toBe(false);
  });
});

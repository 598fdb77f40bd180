import { expect, test } from "bun:test";
import type { Backend } from "../../src/inference/engine.ts";
import type { EngineProfile } from "../../src/inference/engine-profile.ts";
import { differenceOf } from "../../src/inference/one-pool.ts";

const PROFILE: EngineProfile = {
  ...{ kind: "vllm", version: null, rung: "completions", max_model_len: 4_096, logprobs: true },
  ...{ stop_id_included: true, salt: true, load: [], control: false, tokenize: true },
  ...{ tokenizer_hash: "t", weight_version: null, passed_over: [] },
};
const backend = (fields: Partial<Backend> = {}, profile: Partial<EngineProfile> = {}): Backend => ({
  ...{ id: "a", url: "http://x/v1", model: "m", profile: { ...PROFILE, ...profile } },
  ...fields,
});

test.each([
  ["its model is", "model", backend({ model: "other" })],
  ["its model folder is /m, not none", "model_dir", backend({ modelDir: "/m" })],
  ["it takes no token ids", "engine", backend({}, { rung: "chat" })],
  ["its context has 8192 tokens, not 4096", "engine", backend({}, { max_model_len: 8_192 })],
  ["its tokenizer gives other ids", "engine", backend({}, { tokenizer_hash: "u" })],
])("a rollout can't move to a backend where %s", (what, field, other) => {
  const found = differenceOf(backend(), other);
  expect([found?.field as string, found?.what.startsWith(what)]).toEqual([field, true]);
});

test("what an engine does not say of itself is no difference", () => {
  const silent = { max_model_len: null, tokenizer_hash: null };
  expect(differenceOf(backend(), backend({ id: "b", url: "http://y/v1" }, silent))).toBeNull();
});

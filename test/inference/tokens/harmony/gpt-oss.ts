import { copyFileSync } from "node:fs";
import { join } from "node:path";
import o200k from "js-tiktoken/ranks/o200k_base";
import { type JsHarmonyEncoding, load_harmony_encoding } from "openai-harmony";
import { loadTokenModel, type TokenModel } from "../../../../src/inference/tokens/token-model.ts";
import { tempDir } from "../../../support/temp-dir.ts";

/** Those of gpt-oss that are in use. */
const SPECIALS = {
  ...{ "<|startoftext|>": 199_998, "<|endoftext|>": 199_999, "<|return|>": 200_002 },
  ...{ "<|constrain|>": 200_003, "<|channel|>": 200_005, "<|start|>": 200_006 },
  ...{ "<|end|>": 200_007, "<|message|>": 200_008, "<|call|>": 200_012 },
};

export type GptOss = {
  /** Ours, by a model folder. */
  model: TokenModel;
  /** OpenAI's own renderer and parser: its Rust library, compiled for the web. */
  harmony: JsHarmonyEncoding;
};

/**
 * gpt-oss without the model: the vocabulary that it has in common with OpenAI's other models, which a package of theirs
 * carries, with its special tokens, as `tokenizer.json` for us and as tiktoken's file for the library. Its own chat
 * template is in no package; in its place is one of our own, which writes what the library writes.
 */
export async function gptOss(): Promise<GptOss> {
  const tokens = o200k.bpe_ranks.split("\n").flatMap((line) => {
    const [, offset, ...rest] = line.split(" ");
    return rest.map((token, index) => ({ token, rank: Number(offset) + index }));
  });
  const [model, harmony] = await Promise.all([ours(tokens), theirs(tokens)]);
  return { model, harmony };
}

type Token = { token: string; rank: number };

async function ours(tokens: Token[]): Promise<TokenModel> {
  using dir = tempDir();
  const vocab = new Map<string, number>();
  for (const { token, rank } of tokens) vocab.set(byteLevel(Buffer.from(token, "base64")), rank);
  const added_tokens = Object.entries(SPECIALS).map(([content, id]) => {
    return { id, content, special: true, normalized: false };
  });
  const pretokenizers = [
    { type: "Split", pattern: { Regex: o200k.pat_str }, behavior: "Isolated", invert: false },
    { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false },
  ];
  const tokenizer = {
    added_tokens,
    pre_tokenizer: { type: "Sequence", pretokenizers },
    ...{ normalizer: null, post_processor: null, decoder: { type: "ByteLevel" } },
    model: { type: "BPE", vocab: Object.fromEntries(vocab), merges: mergesOf(vocab) },
  };
  await Bun.write(dir.file("tokenizer.json"), JSON.stringify(tokenizer));
  await Bun.write(dir.file("tokenizer_config.json"), JSON.stringify({ eos_token: "<|return|>" }));
  const eos_token_id = [200_002, 199_999, 200_012];
  await Bun.write(dir.file("generation_config.json"), JSON.stringify({ eos_token_id }));
  const template = "chat_template.jinja";
  copyFileSync(join(import.meta.dir, template), dir.file(template));
  return await loadTokenModel(dir.path);
}

/** tiktoken joins whatever makes a token, the lowest one first; the tokenizers library wants to know each pair. */
function mergesOf(vocab: ReadonlyMap<string, number>): [string, string][] {
  const merges: [string, string][] = [];
  for (const token of vocab.keys()) {
    for (let at = 1; at < token.length; at++) {
      const left = token.slice(0, at);
      if (!vocab.has(left)) continue;
      const right = token.slice(at);
      if (vocab.has(right)) merges.push([left, right]);
    }
  }
  return merges;
}

/** GPT-2's way to write bytes as characters that can be seen. */
function byteLevel(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += CHARS[byte];
  return text;
}

const CHARS = (() => {
  let hidden = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isSeen = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCharCode(isSeen ? byte : 256 + hidden++);
  });
})();

/** The library fetches its vocabulary. */
async function theirs(tokens: Token[]): Promise<JsHarmonyEncoding> {
  const file = tokens.map(({ token, rank }) => `${token} ${rank}\n`).join("");
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(file) });
  try {
    return await load_harmony_encoding("HarmonyGptOss", `http://127.0.0.1:${server.port}/`);
  } finally {
    await server.stop(true);
  }
}

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHAT_TEMPLATE } from "./chatml.ts";
import { byteTokenizer, SPECIALS } from "./tokenizer.ts";

/**
 * Writes the simulated model as a Hugging Face folder, so that token mode can be tried without a real model:
 * its ids are those of the simulated engine.
 */
export function writeModelFolder(path: string): void {
  mkdirSync(path, { recursive: true });
  const write = (name: string, value: unknown) =>
    writeFileSync(join(path, name), `${JSON.stringify(value, null, 2)}\n`);
  const vocab = Object.fromEntries(byteCharacters().map((text, id) => [text, id]));
  const added = SPECIALS.map((content) => ({
    id: byteTokenizer.specialId(content),
    content,
    ...{ single_word: false, lstrip: false, rstrip: false, normalized: false, special: true },
  }));
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: false };
  write("tokenizer.json", {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: { ...byteLevel, trim_offsets: false },
    post_processor: null,
    decoder: { ...byteLevel, trim_offsets: false },
    model: { type: "BPE", unk_token: null, byte_fallback: false, vocab, merges: [] },
  });
  write("tokenizer_config.json", {
    tokenizer_class: "PreTrainedTokenizerFast",
    eos_token: "<|im_end|>",
    pad_token: "<|endoftext|>",
    clean_up_tokenization_spaces: false,
    chat_template: CHAT_TEMPLATE,
  });
}

/** The character that stands for each byte in a byte-level vocabulary, as GPT-2 introduced it. */
function byteCharacters(): string[] {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(printable(byte) ? byte : next++),
  );
}

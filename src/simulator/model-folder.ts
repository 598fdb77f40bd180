import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { byteTokenizer, SPECIALS } from "./tokenizer.ts";

/** ChatML with tools, as Qwen's models have it. Every tag of the engine's is one token. */
const CHAT_TEMPLATE = `{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- '# Tools\n\nYou may call these functions:\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\n</tools><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' and loop.first and tools %}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}
            {{- '\n' + message.content }}
        {%- endif %}
        {%- for call in message.tool_calls or [] %}
            {{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {%- if call.function.arguments is string %}
                {{- call.function.arguments }}
            {%- else %}
                {{- call.function.arguments | tojson }}
            {%- endif %}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' + message.content + '\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}`;

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

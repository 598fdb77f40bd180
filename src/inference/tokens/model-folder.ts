import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";

type Json = Record<string, unknown>;

/** One entry of `added_tokens`: a string that is always one token. */
export type AddedToken = { id: number; content: string; special: boolean };

/** What a Hugging Face model folder says about tokens, as plain data. */
export type ModelFolder = {
  path: string;
  /** `tokenizer.json`, with the added tokens that only `tokenizer_config.json` knows. */
  tokenizer: Json & { added_tokens: AddedToken[] };
  config: Json;
  /** By name; `default` is the one without a name. */
  templates: Map<string, { text: string; file: string }>;
  /** `bos_token` and the like, as the templates know them. */
  specialTokens: Record<string, string>;
  /** What ends a turn according to the folder, before its template was asked. */
  stopTokens: (string | number)[];
};

const SPECIAL_NAMES = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"].map(
  (name) => `${name}_token`,
);

/** @throws ServiceError `model_folder_invalid`, naming the file and what to do. */
export async function readModelFolder(path: string): Promise<ModelFolder> {
  if (!existsSync(path)) {
    const mend = "name the folder that holds the model's tokenizer.json";
    throw new ServiceError("model_folder_invalid", `there is no folder ${path}`, { mend });
  }
  const tokenizer = await readJson(path, "tokenizer.json", NEED_TOKENIZER);
  if (!tokenizer) throw missing(path, "tokenizer.json", NEED_TOKENIZER);
  const config = (await readJson(path, "tokenizer_config.json")) ?? {};
  const named = (await readJson(path, "special_tokens_map.json")) ?? {};
  const generation = (await readJson(path, "generation_config.json")) ?? {};
  const specialTokens: Record<string, string> = {};
  for (const name of SPECIAL_NAMES) {
    const content = contentOf(config[name]) ?? contentOf(named[name]);
    if (content !== undefined) specialTokens[name] = content;
  }
  const eos = [generation.eos_token_id].flat().filter((id) => typeof id === "number");
  return {
    path,
    tokenizer: { ...tokenizer, added_tokens: addedTokens(path, tokenizer, config) },
    config,
    templates: await readTemplates(path, config),
    specialTokens,
    stopTokens: [...(specialTokens.eos_token ? [specialTokens.eos_token] : []), ...eos],
  };
}

const NEED_TOKENIZER =
  "use a folder with a fast tokenizer; AutoTokenizer.from_pretrained(...).save_pretrained(...) writes one";
const NEED_TEMPLATE =
  "put the model's template there as chat_template.jinja; base models have none, their chat versions do";

/** A template file wins over the configuration, as in transformers. */
async function readTemplates(path: string, config: Json): Promise<ModelFolder["templates"]> {
  const templates: ModelFolder["templates"] = new Map();
  const legacy = (await readJson(path, "chat_template.json"))?.chat_template;
  for (const [value, file] of [
    [config.chat_template, "tokenizer_config.json"],
    [legacy, "chat_template.json"],
  ] as const) {
    if (typeof value === "string") templates.set("default", { text: value, file });
    if (!Array.isArray(value)) continue;
    for (const { name, template } of value) {
      if (typeof name === "string" && typeof template === "string") {
        templates.set(name, { text: template, file });
      }
    }
  }
  const main = await readText(path, "chat_template.jinja");
  if (main !== null) templates.set("default", { text: main, file: "chat_template.jinja" });
  for (const name of await namesIn(join(path, "additional_chat_templates"))) {
    if (!name.endsWith(".jinja")) continue;
    const file = join("additional_chat_templates", name);
    const text = await readText(path, file);
    if (text !== null) templates.set(name.slice(0, -".jinja".length), { text, file });
  }
  if (templates.size === 0) throw missing(path, "chat_template.jinja", NEED_TEMPLATE);
  return templates;
}

/** Transformers adds what only the configuration lists, and so do the engines. */
function addedTokens(path: string, tokenizer: Json, config: Json): AddedToken[] {
  const { added_tokens = [] } = tokenizer;
  if (!Array.isArray(added_tokens)) {
    throw invalid(path, "tokenizer.json", "added_tokens is not a list", NEED_TOKENIZER);
  }
  const added = [...(added_tokens as AddedToken[])];
  const known = new Set(added.map(({ id }) => id));
  for (const [key, value] of Object.entries(config.added_tokens_decoder ?? {})) {
    const content = contentOf(value);
    const id = Number(key);
    if (content === undefined || known.has(id)) continue;
    added.push({ ...(value as Json), id, content, special: (value as Json).special === true });
  }
  return added;
}

function contentOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}

async function readJson(path: string, file: string, mend?: string): Promise<Json | null> {
  const text = await readText(path, file);
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  } catch (cause) {
    throw invalid(path, file, `is not JSON: ${(cause as Error).message}`, mend ?? COPY_AGAIN);
  }
  throw invalid(path, file, "is not a JSON object", mend ?? COPY_AGAIN);
}

const COPY_AGAIN = "copy the file again; a Git LFS pointer in its place is a common cause";

async function readText(path: string, file: string): Promise<string | null> {
  try {
    return await Bun.file(join(path, file)).text();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw invalid(path, file, `can't be read: ${(cause as Error).message}`, "check its rights");
  }
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return (await readdir(path)).toSorted();
  } catch {
    return [];
  }
}

function missing(path: string, file: string, mend: string): ServiceError {
  return new ServiceError("model_folder_invalid", `${path} has no ${file}`, { mend });
}

function invalid(path: string, file: string, what: string, mend: string): ServiceError {
  return new ServiceError("model_folder_invalid", `${join(path, file)}: ${what}`, { mend });
}

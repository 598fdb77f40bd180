import { BPE, Tokenizer as HfTokenizer } from "@huggingface/tokenizers";
import { ServiceError } from "../../errors.ts";
import { splitByteLevel } from "./byte-level-words.ts";
import { type BpeModel, mergeFast } from "./byte-pair-merge.ts";
import type { ModelFolder } from "./model-folder.ts";

/** A stretch of ids: either one added token, or plain text between two of them. */
export type Piece = { text: string; start: number; end: number; added: boolean };

/** Text to ids and back, wherever it is done. */
export type TextTokenizer = Pick<
  Tokenizer,
  "encode" | "decode" | "addedId" | "addedContent" | "addedContents" | "pieces"
>;

/** Text to ids and back, exactly: nothing is added, trimmed or cleaned up. */
export class Tokenizer {
  readonly #inner: HfTokenizer;
  readonly #added = new Map<number, string>();
  readonly #idOfAdded = new Map<string, number>();

  /** @throws ServiceError `model_folder_invalid` for a tokenizer of an unknown kind. */
  constructor(folder: ModelFolder) {
    try {
      const pre_tokenizer = splitByteLevel(folder.tokenizer.pre_tokenizer);
      this.#inner = new HfTokenizer({ ...folder.tokenizer, pre_tokenizer }, folder.config);
      if (this.#inner.model instanceof BPE) mergeFast(this.#inner.model as unknown as BpeModel);
    } catch (cause) {
      const message = `${folder.path}/tokenizer.json: ${(cause as Error).message}`;
      const mend = "only BPE, Unigram and WordPiece tokenizers of the tokenizers library are known";
      throw new ServiceError("model_folder_invalid", message, { mend, cause });
    }
    for (const { id, content } of folder.tokenizer.added_tokens) {
      this.#added.set(id, content);
      this.#idOfAdded.set(content, id);
    }
  }

  /** How many ids there are, from 0 on; some may be without a token. */
  get size(): number {
    const model = this.#inner.model as { vocab?: unknown[] } | null;
    return model?.vocab?.length ?? 0;
  }

  /** Added tokens in the text become their ids, so whoever quotes a stranger must escape first. */
  encode(text: string): number[] {
    return text === "" ? [] : this.#inner.encode(text, { add_special_tokens: false }).ids;
  }

  /** Bytes that are no UTF-8 become U+FFFD. An id that the vocabulary lacks has no text. */
  decode(ids: ArrayLike<number>): string {
    const known = Array.from(ids).filter((id) => this.#inner.id_to_token(id) !== undefined);
    if (known.length === 0) return "";
    return this.#inner.decode(known, {
      skip_special_tokens: false,
      clean_up_tokenization_spaces: false,
    });
  }

  /** The id of a string that is always one token; undefined for any other string. */
  addedId(content: string): number | undefined {
    return this.#idOfAdded.get(content);
  }

  addedContent(id: number): string | undefined {
    return this.#added.get(id);
  }

  get addedContents(): readonly string[] {
    return [...this.#idOfAdded.keys()];
  }

  pieces(ids: ArrayLike<number>): Piece[] {
    return piecesOf(this, ids);
  }
}

/** The ids cut at each added token. `start` and `end` are indices of ids. */
export function piecesOf(
  tokenizer: Pick<TextTokenizer, "decode" | "addedContent">,
  given: ArrayLike<number>,
): Piece[] {
  const ids = Array.from(given);
  const pieces: Piece[] = [];
  let from = 0;
  const flush = (end: number) => {
    if (end <= from) return;
    const text = tokenizer.decode(ids.slice(from, end));
    pieces.push({ text, start: from, end, added: false });
  };
  ids.forEach((id, index) => {
    const content = tokenizer.addedContent(id);
    if (content === undefined) return;
    flush(index);
    pieces.push({ text: content, start: index, end: index + 1, added: true });
    from = index + 1;
  });
  flush(ids.length);
  return pieces;
}

/** What of a BPE model of the tokenizers library is needed, and replaced. */
export type BpeModel = {
  tokens_to_ids: Map<string, number>;
  merges: [string, string][];
  bpe_ranks: Map<string, number>;
  end_of_word_suffix?: string | null;
  continuing_subword_suffix?: string | null;
  bpe(word: string): string[];
};

/** A pair of ids as one number; no vocabulary has as many entries. */
const PAIR = 2 ** 24;
const MAX_CACHED_WORDS = 20_000;
const MAX_CACHED_CHARS = 64;

/**
 * Gives a BPE model a merge of our own with the same results: by numbers instead of by JSON of pairs of
 * strings, because what agents print may be a megabyte without a border between words, which would keep
 * a thread busy for half a minute.
 */
export function mergeFast(model: BpeModel): void {
  if (model.end_of_word_suffix || model.continuing_subword_suffix) return;
  const merge = new Merger(model.tokens_to_ids, model.merges);
  const cache = new Map<string, string[]>();
  model.bpe = (word) => {
    const known = cache.get(word);
    if (known) return known;
    const tokens = merge.split(word);
    if (word.length <= MAX_CACHED_CHARS) {
      if (cache.size >= MAX_CACHED_WORDS) cache.clear();
      cache.set(word, tokens);
    }
    return tokens;
  };
  model.bpe_ranks.clear();
}

type Merge = { rank: number; id: number };

class Merger {
  readonly #idOf: ReadonlyMap<string, number>;
  readonly #textOf: string[] = [];
  readonly #merges = new Map<number, Merge>();

  constructor(idOf: ReadonlyMap<string, number>, merges: readonly [string, string][]) {
    this.#idOf = idOf;
    for (const [text, id] of idOf) this.#textOf[id] = text;
    for (const [rank, [left, right]] of merges.entries()) {
      const [a, b, id] = [left, right, left + right].map((text) => idOf.get(text));
      if (a === undefined || b === undefined || id === undefined) continue;
      const pair = a * PAIR + b;
      if (!this.#merges.has(pair)) this.#merges.set(pair, { rank, id });
    }
  }

  /** Joins the neighbours of the lowest rank, the leftmost first, until none can be joined. */
  split(word: string): string[] {
    const chars = Array.from(word);
    const length = chars.length;
    // What the vocabulary lacks is joined with nothing.
    const ids = Int32Array.from(chars, (char) => this.#idOf.get(char) ?? -1);
    const next = Int32Array.from(chars, (_, at) => at + 1);
    const before = Int32Array.from(chars, (_, at) => at - 1);
    const queue = new Queue();
    const mergeAt = (at: number): Merge | undefined => {
      const right = next[at] as number;
      const id = ids[at] as number;
      if (right >= length || id < 0 || (ids[right] as number) < 0) return undefined;
      return this.#merges.get(id * PAIR + (ids[right] as number));
    };
    const look = (at: number) => {
      const merge = mergeAt(at);
      if (merge) queue.push(merge.rank * PAIR * 2 + at);
    };
    for (let at = 0; at < length - 1; at++) look(at);
    for (let key = queue.pop(); key !== undefined; key = queue.pop()) {
      const at = key % (PAIR * 2);
      const merge = next[at] === -1 ? undefined : mergeAt(at);
      // An entry whose pair is no longer there.
      if (!merge || merge.rank !== Math.floor(key / (PAIR * 2))) continue;
      const right = next[at] as number;
      const after = next[right] as number;
      ids[at] = merge.id;
      next[at] = after;
      next[right] = -1;
      if (after < length) before[after] = at;
      look(at);
      if ((before[at] as number) >= 0) look(before[at] as number);
    }
    const tokens: string[] = [];
    for (let at = 0; at < length; at = next[at] as number) {
      const id = ids[at] as number;
      tokens.push(id < 0 ? (chars[at] as string) : (this.#textOf[id] as string));
    }
    return tokens;
  }
}

/** The smallest number first. */
class Queue {
  readonly #heap: number[] = [];

  push(key: number): void {
    const heap = this.#heap;
    let at = heap.push(key) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((heap[parent] as number) <= key) break;
      heap[at] = heap[parent] as number;
      at = parent;
    }
    heap[at] = key;
  }

  pop(): number | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child++;
      if ((heap[child] as number) >= last) break;
      heap[at] = heap[child] as number;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

import {
  BLOCK_TOKENS,
  blocksFor,
  type KvMemory,
  reusableBlocks,
} from "../../src/simulator/kv-memory.ts";

/** What a rollout has come to. The first `sharedTokens` are those of its whole group, and no others are anybody else's. */
export type Known = { owner: number; group: string; tokens: number; sharedTokens: number };

/** The blocks of a group's first prompt, or those that a rollout has behind it. */
type Part = {
  blocks: number;
  /** Requests that use it. */
  users: number;
};

/** Room for one request. */
export type Tenancy = {
  cachedTokens: number;
  readonly prompt: Known;
  readonly first: Part;
  readonly own: Part;
  /** What was found of both. */
  readonly found: { first: number; own: number };
  /** Blocks that can't be shared yet, or are there twice. */
  unshared: number;
};

/**
 * The memory of a `KvCache` where it is known beforehand which sequences begin alike: it counts blocks instead of hashing
 * them, which makes it some hundred times as fast.
 */
export class KnownMemory implements KvMemory<Known, Tenancy> {
  readonly capacityBlocks: number;
  /** First prompts by group, and what is behind them by owner. */
  readonly #parts = new Map<string | number, Part>();
  /** What nobody uses, the longest unused first. */
  readonly #idle = new Set<string | number>();
  #usedBlocks = 0;
  #idleBlocks = 0;

  constructor(capacityTokens: number) {
    this.capacityBlocks = Math.floor(capacityTokens / BLOCK_TOKENS);
  }

  get usage(): number {
    return this.#usedBlocks / this.capacityBlocks;
  }

  get availableBlocks(): number {
    return this.capacityBlocks - this.#usedBlocks;
  }

  reserve(prompt: Known, headroom = 0): Tenancy | null {
    const first = this.#partOf(prompt.group);
    const own = this.#partOf(prompt.owner);
    const reusable = reusableBlocks(prompt.tokens);
    const whole = fullBlocks(prompt.sharedTokens);
    const inFirst = Math.min(reusable, whole, first.blocks);
    const inOwn = inFirst < whole ? 0 : Math.min(reusable - whole, own.blocks);
    const unshared = blocksFor(prompt.tokens) - inFirst - inOwn;
    const foundIdle = [first, own].reduce((sum, { users, blocks }) => {
      return sum + (users === 0 ? blocks : 0);
    }, 0);
    if (this.availableBlocks - foundIdle < unshared + headroom) return null;
    this.#use(prompt.group, first);
    this.#use(prompt.owner, own);
    this.#take(unshared);
    const cachedTokens = (inFirst + inOwn) * BLOCK_TOKENS;
    const found = { first: first.blocks, own: own.blocks };
    return { cachedTokens, prompt, first, own, found, unshared };
  }

  share(tenancy: Tenancy, { tokens, sharedTokens } = tenancy.prompt): void {
    const whole = fullBlocks(sharedTokens);
    for (const [part, upTo] of [
      [tenancy.first, whole],
      [tenancy.own, fullBlocks(tokens) - whole],
    ] as const) {
      const more = Math.min(tenancy.unshared, Math.max(0, upTo - part.blocks));
      part.blocks += more;
      tenancy.unshared -= more;
    }
  }

  grow(tenancy: Tenancy, tokens: number): boolean {
    const { first, own, prompt } = tenancy;
    const shared = Math.min(first.blocks, fullBlocks(prompt.sharedTokens));
    const more = blocksFor(tokens) - shared - own.blocks - tenancy.unshared;
    if (more <= 0) return true;
    if (this.availableBlocks < more) return false;
    this.#take(more);
    tenancy.unshared += more;
    return true;
  }

  release(tenancy: Tenancy, computed: Known | null): void {
    const { prompt, first, own, found } = tenancy;
    if (computed) this.share(tenancy, computed);
    this.#usedBlocks -= tenancy.unshared;
    // The beginning goes last, as everything after it is useless without.
    this.#leave(prompt.owner, own, computed ? own.blocks : found.own);
    this.#leave(prompt.group, first, computed ? first.blocks : found.first);
  }

  #partOf(name: string | number): Part {
    const known = this.#parts.get(name);
    if (known) return known;
    const part = { blocks: 0, users: 0 };
    this.#parts.set(name, part);
    return part;
  }

  #use(name: string | number, part: Part): void {
    if (part.users++ > 0) return;
    this.#idle.delete(name);
    this.#idleBlocks -= part.blocks;
    this.#usedBlocks += part.blocks;
  }

  #leave(name: string | number, part: Part, computed: number): void {
    if (--part.users > 0) return;
    this.#usedBlocks -= part.blocks;
    part.blocks = computed;
    this.#idleBlocks += computed;
    this.#idle.add(name);
  }

  /** Throws out what is unused for longest, from its end, where there is no other room. */
  #take(blocks: number): void {
    this.#usedBlocks += blocks;
    for (const name of this.#idle) {
      const over = this.#usedBlocks + this.#idleBlocks - this.capacityBlocks;
      if (over <= 0) return;
      const part = this.#partOf(name);
      const gone = Math.min(part.blocks, over);
      part.blocks -= gone;
      this.#idleBlocks -= gone;
      if (part.blocks > 0) return;
      this.#idle.delete(name);
      this.#parts.delete(name);
    }
  }
}

function fullBlocks(tokens: number): number {
  return Math.floor(tokens / BLOCK_TOKENS);
}

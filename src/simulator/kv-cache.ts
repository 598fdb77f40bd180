import { BLOCK_TOKENS, blocksFor, type KvMemory, reusableBlocks } from "./kv-memory.ts";

/** A sequence of ids as the cache knows it. */
export type Prefix = {
  tokens: number;
  /** Its full blocks, by the hash of everything up to their end. */
  hashes: readonly number[];
};

/** Room for one request. */
export type Lease = {
  cachedTokens: number;
  readonly prompt: Prefix;
  /** Which of them this request keeps from being evicted. */
  readonly pinned: Set<number>;
  /** Blocks that are reserved and can't be shared yet. */
  unshared: number;
};

/**
 * A memory that finds prefixes again by a hash chain that begins with the salt. What nobody uses is evicted, the longest
 * unused first.
 */
export class KvCache implements KvMemory<Prefix, Lease> {
  readonly capacityBlocks: number;
  /** By hash: how many requests use the block now. */
  readonly #shared = new Map<number, number>();
  /** Shared blocks that nobody uses, the longest unused first. */
  readonly #idle = new Set<number>();
  #unshared = 0;

  constructor(capacityTokens: number) {
    this.capacityBlocks = Math.floor(capacityTokens / BLOCK_TOKENS);
  }

  get usage(): number {
    return (this.#shared.size - this.#idle.size + this.#unshared) / this.capacityBlocks;
  }

  fits(tokens: number): boolean {
    return blocksFor(tokens) <= this.capacityBlocks;
  }

  get availableBlocks(): number {
    return this.capacityBlocks - this.#shared.size - this.#unshared + this.#idle.size;
  }

  reserve(prompt: Prefix, headroom = 0): Lease | null {
    const reusable = reusableBlocks(prompt.tokens);
    const pinned = new Set<number>();
    for (const hash of prompt.hashes.slice(0, reusable)) {
      if (!this.#shared.has(hash)) break;
      pinned.add(hash);
    }
    const unshared = blocksFor(prompt.tokens) - pinned.size;
    let foundIdle = 0;
    for (const hash of pinned) if (this.#idle.has(hash)) foundIdle++;
    // Who has to wait changes nothing, so that asking again and again keeps no prefix from being evicted.
    if (this.availableBlocks - foundIdle < unshared + headroom) return null;
    for (const hash of pinned) this.#pin(hash);
    this.#makeRoom(unshared);
    this.#unshared += unshared;
    return { cachedTokens: pinned.size * BLOCK_TOKENS, prompt, pinned, unshared };
  }

  grow(lease: Lease, tokens: number): boolean {
    const more = blocksFor(tokens) - lease.pinned.size - lease.unshared;
    if (more <= 0) return true;
    if (!this.#makeRoom(more)) return false;
    lease.unshared += more;
    this.#unshared += more;
    return true;
  }

  share(lease: Lease, { hashes } = lease.prompt): void {
    for (const hash of hashes) {
      if (lease.pinned.has(hash) || this.#shared.has(hash) || lease.unshared === 0) continue;
      lease.unshared--;
      this.#unshared--;
      this.#shared.set(hash, 1);
      lease.pinned.add(hash);
    }
  }

  release(lease: Lease, computed: Prefix | null): void {
    if (computed) this.share(lease, computed);
    this.#unshared -= lease.unshared;
    const found = lease.cachedTokens / BLOCK_TOKENS;
    // The beginning of a prefix goes last, as everything after it is useless without.
    for (const [index, hash] of [...lease.pinned].entries().toArray().reverse()) {
      this.#unpin(hash);
      const isComputed = computed !== null || index < found;
      if (!isComputed && this.#idle.delete(hash)) this.#shared.delete(hash);
    }
  }

  /** Forgets what nobody uses. */
  flush(): void {
    for (const hash of this.#idle) this.#shared.delete(hash);
    this.#idle.clear();
  }

  #makeRoom(blocks: number): boolean {
    const free = () => this.capacityBlocks - this.#shared.size - this.#unshared;
    if (free() + this.#idle.size < blocks) return false;
    for (const hash of this.#idle) {
      if (free() >= blocks) break;
      this.#idle.delete(hash);
      this.#shared.delete(hash);
    }
    return true;
  }

  #pin(hash: number): void {
    this.#shared.set(hash, (this.#shared.get(hash) ?? 0) + 1);
    this.#idle.delete(hash);
  }

  #unpin(hash: number): void {
    const users = (this.#shared.get(hash) ?? 1) - 1;
    this.#shared.set(hash, users);
    if (users === 0) this.#idle.add(hash);
  }
}

/** One number per full block, of everything before its end. Two 32-bit hashes make 53 bits. */
export function prefixOf(ids: readonly number[], salt: string): Prefix {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  const mix = (value: number) => {
    a = Math.imul(a ^ value, 0x01000193);
    b = Math.imul((b ^ value) + (b >>> 15), 0x85ebca6b);
  };
  for (let index = 0; index < salt.length; index++) mix(salt.charCodeAt(index));
  const hashes: number[] = [];
  const full = ids.length - (ids.length % BLOCK_TOKENS);
  for (let index = 0; index < full; index++) {
    mix(ids[index] as number);
    if (index % BLOCK_TOKENS === BLOCK_TOKENS - 1) {
      hashes.push((a >>> 0) * 2 ** 21 + ((b ^ (b >>> 13)) >>> 11));
    }
  }
  return { tokens: ids.length, hashes };
}

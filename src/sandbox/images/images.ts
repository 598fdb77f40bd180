import { ServiceError } from "../../errors.ts";
import type { FileLock } from "../../lib/file-lock.ts";
import { SharedTasks } from "../../lib/shared-tasks.ts";
import { readJson, writeJson } from "./cache-folder.ts";
import { cannotRead, fileDigest, fileState } from "./file-digest.ts";
import { ImageCache } from "./image-cache.ts";
import { allowing, type ImagePolicy, pinnedReference } from "./image-policy.ts";
import { type InstallOptions, installKnown, installPulled } from "./install.ts";
import { type NamedImage, readName } from "./names.ts";
import { contentKey, pullKey } from "./on-node.ts";
import { parseReference, type Reference } from "./reference.ts";
import { findSource, type Source } from "./source.ts";
import { treeDigest } from "./tree.ts";

export type ImageSettings = {
  /** Folder of the cache, shared by the services of one user on a node. */
  cacheDir: string;
  /** Units: bytes. Unused images go, the least recently used first, when the cache is larger. */
  maxBytes: number;
  /** Units: bytes. A SIF above this is mounted from its file; null: never. */
  mountAboveBytes: number | null;
  /** The Apptainer or Singularity program, by path or name. */
  apptainer: string;
  /** What may be named; a name stands for what the operator has added. */
  policy: ImagePolicy;
};

/** An image that stays as it is until the lease is over. */
export type ImageLease = {
  /** Absolute path of a root file system, or of a SIF to be mounted. */
  path: string;
  /** Null where the image is not in the cache: a folder in place, a SIF that is mounted. */
  digest: string | null;
  lock: FileLock | null;
};

export type CachedLease = { path: string; digest: string; lock: FileLock };

/** Finds the files of images, and unpacks them where they are not unpacked yet. */
export class Images {
  readonly #settings: ImageSettings;
  readonly #digests = new SharedTasks<string>();
  readonly #installs = new SharedTasks<string>();
  #cache: ImageCache | null;

  constructor(settings: ImageSettings, cache: ImageCache | null = null) {
    this.#settings = settings;
    this.#cache = cache;
  }

  /** Made at first use: who only uses folders needs none. @throws ServiceError `image_cache_unusable` */
  get cache(): ImageCache {
    this.#cache ??= new ImageCache(this.#settings.cacheDir);
    return this.#cache;
  }

  /**
   * @param image a name, an absolute path, `docker-archive:/PATH`, `oci-archive:/PATH`, or a registry's URI
   * @throws ServiceError `image_*`, `disk_full`, `sandbox_unavailable`, `invalid_field` and `address_forbidden` for what
   * may not be named, or the reason of `signal`
   */
  async acquire(image: string, signal: AbortSignal): Promise<ImageLease> {
    const reference = parseReference(image);
    if (reference.kind === "name") {
      const named = readName(this.cache.folder, reference.name);
      const ready = await this.cache.lease(named.digest, signal);
      if (ready) return this.#leased(named.digest, ready);
      return await this.#cached(() => this.#remake(named, signal), signal);
    }
    // What a registry has given before is used without asking it; `pullImage` asks none that is not allowed.
    const pinned =
      reference.kind === "registry"
        ? reference
        : pinnedReference(reference, image, this.#settings.policy);
    const source = await findSource(pinned);
    if (source.kind === "folder") return { path: source.location, digest: null, lock: null };
    if (await this.#isMounted(source)) return { path: source.location, digest: null, lock: null };
    const { policy } = this.#settings;
    // Its registry may be asked for this image, and for no other.
    const own = policy.named.includes(image) ? allowing(image, policy) : policy;
    return await this.#cached(() => this.install(image, source, signal, { policy: own }), signal);
  }

  /** Brings an image into the cache, also a folder, and keeps it while the lease lasts. */
  async add(
    image: string,
    reference: Exclude<Reference, { kind: "name" }>,
    signal: AbortSignal,
  ): Promise<CachedLease> {
    const source = await findSource(reference);
    // A registry is asked again: the reference may stand for something newer.
    let fresh = source.kind === "registry";
    const install = () => {
      const done = this.install(image, source, signal, { fresh });
      fresh = false;
      return done;
    };
    return await this.#cached(install, signal);
  }

  /** @returns the digest of what is now in the cache */
  async install(
    image: string,
    source: Source,
    signal: AbortSignal,
    { fresh = false, policy = this.#settings.policy } = {},
  ): Promise<string> {
    const { cache } = this;
    const { apptainer, maxBytes } = this.#settings;
    const { registries } = policy;
    const given = { cache, image, source, apptainer, maxBytes, registries };
    const options = (shared: AbortSignal): InstallOptions => ({ ...given, signal: shared });
    if (source.kind === "registry") {
      const key = pullKey(source.location);
      const start = (shared: AbortSignal) => this.#pull(options(shared), key, fresh);
      return await this.#installs.run(key, signal, start);
    }
    const digest = await this.#digestOf(source, signal);
    await this.#installs.run(digest, signal, async (shared) => {
      await installKnown(options(shared), digest);
      return digest;
    });
    return digest;
  }

  /** Leases what `install` names; again, where somebody has removed it in between. */
  async #cached(install: () => Promise<string>, signal: AbortSignal): Promise<CachedLease> {
    for (;;) {
      signal.throwIfAborted();
      const digest = await install();
      const lock = await this.cache.lease(digest, signal);
      if (lock) return this.#leased(digest, lock);
    }
  }

  #leased(digest: string, lock: FileLock): CachedLease {
    return { path: this.cache.folder.rootfs(digest), digest, lock };
  }

  async #pull(options: InstallOptions, key: string, fresh: boolean): Promise<string> {
    const note = this.cache.folder.pulled(key);
    const ready = () => {
      const known = fresh ? null : readJson<{ digest: string }>(note);
      return known !== null && this.cache.has(known.digest) ? known.digest : null;
    };
    const digest = await installPulled(options, key, ready);
    writeJson(note, { digest, uri: options.source.location });
    return digest;
  }

  /** A name keeps its meaning: what it came from has to give the same content again. */
  async #remake({ name, digest, image }: NamedImage, signal: AbortSignal): Promise<string> {
    const reference = parseReference(image);
    if (reference.kind === "name") throw new Error(`the name ${name} stands for a name`);
    const source = await findSource(reference);
    const policy = allowing(image, this.#settings.policy);
    const found = await this.install(image, source, signal, { policy });
    if (found === digest) return found;
    const message = `the image ${name} is no longer in the cache, and ${image} has changed since`;
    throw new ServiceError("image_invalid", message, {
      mend: `rolloutd images add ${image} --name ${name}`,
    });
  }

  async #digestOf(source: Source, signal: AbortSignal): Promise<string> {
    const { kind, location } = source;
    if (kind === "folder") {
      return await treeDigest(location, signal).catch((error) => {
        signal.throwIfAborted();
        throw cannotRead(location, error);
      });
    }
    const state = await fileState(location);
    const key = `${state.dev}-${state.ino}-${state.size}-${state.ctimeNs}`;
    const digest = await this.#digests.run(key, signal, (shared) =>
      fileDigest(this.cache.folder, location, state, shared),
    );
    return contentKey(kind, digest);
  }

  async #isMounted({ kind, location }: Source): Promise<boolean> {
    const { mountAboveBytes } = this.#settings;
    if (kind !== "sif" || mountAboveBytes === null) return false;
    return (await fileState(location)).size > BigInt(mountAboveBytes);
  }
}

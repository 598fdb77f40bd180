import { ServiceError } from "../../errors.ts";
import type { ImageCache } from "./image-cache.ts";
import type { Images } from "./images.ts";
import { listNames, readName, removeName, writeName } from "./names.ts";
import { checkName, defaultName, parseReference } from "./reference.ts";

/** One content and the names that stand for it, as `rolloutd images` shows it. */
export type ImageView = {
  digest: string;
  names: string[];
  /** What it was made from. */
  origin: string;
  /** False where it was pruned: its next use makes it again from its origin. */
  unpacked: boolean;
  bytes: number;
  files: number;
  in_use: boolean;
  last_used: string | null;
};

/**
 * Brings an image into the cache under a name; without one given, under one made from the reference, unless
 * that came from elsewhere.
 * @throws ServiceError `invalid_field`, or as `Images.add` does
 */
export async function addImage(
  images: Images,
  image: string,
  name: string | undefined,
  signal: AbortSignal,
): Promise<ImageView> {
  const reference = parseReference(image);
  if (reference.kind === "name") {
    const message = `"${image}" is a name; add takes a path or a registry's reference`;
    throw new ServiceError("invalid_field", message, { field: "image" });
  }
  const chosen = name ?? defaultName(image);
  checkName(chosen);
  const { folder } = images.cache;
  const lease = await images.add(image, reference, signal);
  using _held = lease.lock;
  const taken = listNames(folder).find((named) => named.name === chosen);
  const moves = taken && taken.digest !== lease.digest && taken.image !== image;
  if (moves && name === undefined) {
    throw new ServiceError("invalid_field", `the name ${chosen} stands for another image`, {
      field: "name",
      mend: `choose one with --name; --name ${chosen} moves it`,
    });
  }
  writeName(folder, { name: chosen, digest: lease.digest, image });
  const added = listImages(images.cache).find(({ digest }) => digest === lease.digest);
  if (!added) throw new Error(`${lease.digest} is leased, and yet it is not there`);
  // It is us.
  return { ...added, in_use: false };
}

/** By the first name, images without one last. */
export function listImages(cache: ImageCache): ImageView[] {
  const names = listNames(cache.folder);
  const namesOf = (digest: string) =>
    names.filter((named) => named.digest === digest).map(({ name }) => name);
  const views = cache.list().map(({ record, lastUsedMs, inUse }) => ({
    digest: record.digest,
    names: namesOf(record.digest),
    origin: names.find(({ digest }) => digest === record.digest)?.image ?? record.source.location,
    unpacked: true,
    bytes: record.inventory.bytes,
    files: record.inventory.files,
    in_use: inUse,
    last_used: new Date(lastUsedMs).toISOString(),
  }));
  const present = new Set(views.map(({ digest }) => digest));
  const absent = new Map(names.map(({ digest, image }) => [digest, image]));
  const pruned = [...absent].flatMap(([digest, origin]) => {
    if (present.has(digest)) return [];
    const nothing = { unpacked: false, bytes: 0, files: 0, in_use: false, last_used: null };
    return [{ digest, names: namesOf(digest), origin, ...nothing }];
  });
  // A name that begins with "~" can't be.
  const key = ({ names: [first = "~"], digest }: ImageView) => `${first} ${digest}`;
  return [...views, ...pruned].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/**
 * Takes a name away, and the files with the last name.
 * @returns false where the files stay, because they are in use
 * @throws ServiceError `image_not_found`
 */
export function removeImage(cache: ImageCache, name: string): boolean {
  const { digest } = readName(cache.folder, name);
  removeName(cache.folder, name);
  if (listNames(cache.folder).some((named) => named.digest === digest)) return true;
  return cache.remove(digest);
}

/** Looks at every file of the named images, or of all. @returns those that are damaged */
export async function verifyImages(
  cache: ImageCache,
  names: string[],
  signal: AbortSignal,
): Promise<{ checked: ImageView[]; damaged: ImageView[] }> {
  const wanted = names.map((name) => readName(cache.folder, name).digest);
  const checked = listImages(cache).filter(
    ({ digest, unpacked }) => unpacked && (names.length === 0 || wanted.includes(digest)),
  );
  const damaged: ImageView[] = [];
  for (const view of checked) {
    if (!(await cache.verify(view.digest, signal))) damaged.push(view);
  }
  return { checked, damaged };
}

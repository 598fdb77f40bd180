import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type ErrorBody, toErrorBody } from "../../../src/errors.ts";
import { Images } from "../../../src/sandbox/images/images.ts";

/** Acquires one image after the other, lets go of each, and says how that went and what is left. */
const [settings = "{}", ...wanted] = process.argv.slice(2);
const images = new Images(JSON.parse(settings));

async function acquire(image: string): Promise<ErrorBody | { digest: string | null }> {
  try {
    const { digest, lock } = await images.acquire(image, new AbortController().signal);
    lock?.[Symbol.dispose]();
    return { digest };
  } catch (error) {
    return toErrorBody(error);
  }
}

for (const image of wanted) console.log(JSON.stringify(await acquire(image)));
await images.cache.sweep();
const { root } = images.cache.folder;
const present = readdirSync(root).filter((name) => !name.startsWith("."));
const leftovers = [".tmp", ".trash"].flatMap((name) => readdirSync(join(root, name)));
console.log(JSON.stringify({ present, leftovers }));

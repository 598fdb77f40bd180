import { Images } from "../../../src/sandbox/images/images.ts";

/** Acquires an image, says how that went as one line, and keeps it until its standard input ends. */
const [image = "", settings = "{}"] = process.argv.slice(2);
const images = new Images(JSON.parse(settings));
try {
  const lease = await images.acquire(image, new AbortController().signal);
  console.log(JSON.stringify({ path: lease.path, digest: lease.digest }));
  await Bun.stdin.text();
} catch (error) {
  const { code, message } = error as { code?: string; message: string };
  console.log(JSON.stringify({ code, message }));
}

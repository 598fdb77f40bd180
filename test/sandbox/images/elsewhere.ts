import { join } from "node:path";
import type { ImageSettings } from "../../../src/sandbox/images/images.ts";

/** Another process that acquires `image` and keeps it. */
export function acquireElsewhere(image: string, settings: ImageSettings) {
  const script = join(import.meta.dir, "acquire-process.ts");
  const child = Bun.spawn([process.execPath, script, image, JSON.stringify(settings)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const reader = child.stdout.getReader();
  return {
    child,
    /** Null where it ended before. */
    async said() {
      const { value } = await reader.read();
      return value === undefined ? null : JSON.parse(Buffer.from(value).toString());
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

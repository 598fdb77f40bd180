import { rename } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../../src/lib/remove-tree.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { required, setup } from "../../sandbox/setup.ts";

const LIMITS = { maxBytes: 200_000_000, maxEntries: 20_000 };

/**
 * Makes `folder/rootfs`, the base image with a repository in `/testbed`, which `make` builds in a sandbox's
 * /tmp/testbed with the image's own programs. The image's files are linked, not copied, where they can be.
 */
export async function derivedImage<T>(
  folder: string,
  make: (sandbox: Sandbox) => Promise<T>,
): Promise<{ image: string; made: T }> {
  const base = required("ROLLOUTD_IMAGE");
  const image = join(folder, "rootfs");
  await using bundle = await setup("bubblewrap");
  const sandbox = await bundle.open();
  const made = await make(sandbox);
  await sandbox.saveTree("/tmp/testbed", join(folder, "testbed"), LIMITS);
  // A link can't lead to another disk, nor to a file of somebody else's.
  const linked = Bun.spawnSync(["cp", "-al", base, image], { stderr: "ignore" });
  if (linked.exitCode !== 0) {
    await removeTree(image);
    const copied = Bun.spawnSync(["cp", "-a", base, image]);
    if (copied.exitCode !== 0) throw new Error(`the image was not copied: ${copied.stderr}`);
  }
  await rename(join(folder, "testbed"), join(image, "testbed"));
  return { image, made };
}

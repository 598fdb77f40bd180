import { join } from "node:path";
import { environment, type Finished } from "./binary.ts";

/**
 * Runs Python 3 with its standard library alone: that of the base image, started by the image's own loader, so
 * that every machine tests with the same one and needs none itself.
 *
 * @param path folders to import from
 */
export async function python(args: string[], path: string[] = []): Promise<Finished> {
  const root = environment("ROLLOUTD_IMAGE");
  const lib = join(root, "usr/lib/x86_64-linux-gnu");
  const command = [join(lib, "ld-linux-x86-64.so.2"), "--library-path", lib];
  const child = Bun.spawn([...command, join(root, "usr/bin/python3"), "-B", ...args], {
    cwd: "/",
    env: { LANG: "C.UTF-8", PYTHONHOME: join(root, "usr"), PYTHONPATH: path.join(":") },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, exitCode };
}

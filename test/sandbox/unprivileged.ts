import { chmod, copyFile, cp, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { required } from "./setup.ts";

/** Apptainer wants a user that has a name, and every system has this one. */
const NOBODY = 65534;
const CHECKOUT = resolve(import.meta.dir, "../..");
const COPIED = ["src/sandbox", "src/lib", "src/errors.ts", "dist/supervisor.bin", "dist/stage.bin"];
const ALSO = ["test/sandbox", "test/support", "package.json", "tsconfig.json", "node_modules/zod"];

/** Of `<prefix>/usr/bin/<program>`. */
function prefixOf(program: string): string {
  return dirname(dirname(dirname(program)));
}

/**
 * Runs a test file as a user without rights, in a copy of what it needs. Where a program or the image are
 * below a folder that this user may not enter (root's cache), they are shown to it at the same path, in a
 * mount namespace of the run.
 */
export async function asUnprivilegedUser(
  testFile: string,
): Promise<{ exitCode: number; output: string }> {
  const dir = await mkdtemp(join(tmpdir(), "rolloutd-nobody-"));
  try {
    await chmod(dir, 0o755);
    for (const path of [...COPIED, ...ALSO]) {
      await cp(join(CHECKOUT, path), join(dir, path), { recursive: true });
    }
    await copyFile(process.execPath, join(dir, "bun"));
    await chmod(join(dir, "bun"), 0o755);
    const programs = [required("ROLLOUTD_APPTAINER"), required("ROLLOUTD_BWRAP")];
    // One of the system's own has no folder to itself, and can be seen anyway.
    const prefixes = programs.filter((path) => !path.startsWith("/usr/")).map(prefixOf);
    const shown = [...prefixes, required("ROLLOUTD_IMAGE")];
    const script = `set -eu
umask 022; mkdir tmp; chown ${NOBODY}:${NOBODY} tmp
show() { # as they are, under a stage that anybody may enter
  i=0; for path in "$@"; do i=$((i + 1)); mkdir stage$i; mount --rbind "$path" stage$i; done
  for path in "$@"; do
    top=/$(echo "$path" | cut -d/ -f2)
    setpriv --reuid ${NOBODY} --regid ${NOBODY} --clear-groups test -x "$path" && continue
    case $top in /tmp) ;; *) mount -t tmpfs -o mode=755 none "$top" ;; esac
  done
  i=0; for path in "$@"; do i=$((i + 1)); mkdir -p "$path"; mount --rbind stage$i "$path"; done
}
show "$@"
# On many nodes any user may mount what FUSE serves; here as well, in this mount namespace.
if [ -c /dev/fuse ]; then
  mkdir devices; mount -t tmpfs none devices; mknod -m 666 devices/fuse c 10 229
  mount --bind devices/fuse /dev/fuse
fi
export HOME=$PWD/tmp TMPDIR=$PWD/tmp BUN_RUNTIME_TRANSPILER_CACHE_PATH=0
exec setpriv --reuid ${NOBODY} --regid ${NOBODY} --clear-groups ./bun test --timeout 60000 ${testFile}`;
    const run = Bun.spawn(["unshare", "--mount", "sh", "-c", script, "sh", ...shown], {
      cwd: dir,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const texts = await Promise.all([run.stdout.text(), run.stderr.text()]);
    return { exitCode: await run.exited, output: texts.join("") };
  } finally {
    await removeTree(dir);
  }
}

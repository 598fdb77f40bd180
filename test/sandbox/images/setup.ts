import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../../src/lib/remove-tree.ts";
import { type ImageSettings, Images } from "../../../src/sandbox/images/images.ts";
import { makeSif, unsquashfsOf } from "../../support/sif.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { required } from "../setup.ts";

export const NO_ABORT = new AbortController().signal;
export const GIB = 1024 ** 3;

export type Bundle = AsyncDisposable & {
  settings: ImageSettings;
  images: Images;
  file(name: string): string;
  /** A small root file system, with `content` in a file. */
  folder(name: string, content?: string): string;
  sif(name: string, content?: string): Promise<string>;
  /** The programs that have unpacked a SIF so far, by their pids. */
  unpackers(): string[];
  /** How many those are. */
  unpacks(): number;
  /** Holds back what is unpacked from now on, until the function that comes back is called. */
  hold(): () => void;
  /** What lies around in the cache that is no image. */
  leftovers(): string[];
  /** Digests of the images that are there. */
  present(): string[];
};

/** A cache of its own, with an `unsquashfs` that is counted and can be held back. */
export async function setup(changes: Partial<ImageSettings> = {}): Promise<Bundle> {
  const dir = tempDir();
  const apptainer = required("ROLLOUTD_APPTAINER");
  mkdirSync(dir.file("bin"));
  await symlink(apptainer, dir.file("bin/apptainer"));
  const log = dir.file("unpacks");
  const script = `#!/bin/sh
echo "$$" >>${log}
while [ -e ${dir.file("held")} ]; do sleep 0.01; done
exec ${unsquashfsOf(apptainer)} "$@"
`;
  await writeFile(dir.file("bin/unsquashfs"), script, { mode: 0o755 });
  const settings: ImageSettings = {
    cacheDir: dir.file("cache"),
    maxBytes: GIB,
    mountAboveBytes: null,
    apptainer: dir.file("bin/apptainer"),
    policy: { named: [], folders: ["/"], registries: [] },
    ...changes,
  };
  const names = (path: string) => (existsSync(path) ? readdirSync(path) : []);
  const unpackers = () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []);
  const folder = (name: string, content = name) => makeRootfs(dir.file(name), content);
  return {
    settings,
    images: new Images(settings),
    file: dir.file,
    folder,
    async sif(name, content = name) {
      const path = dir.file(`${name}.sif`);
      await makeSif(apptainer, folder(`${name}.root`, content), path);
      return path;
    },
    unpackers,
    unpacks: () => unpackers().length,
    hold() {
      appendFileSync(dir.file("held"), "");
      return () => rmSync(dir.file("held"));
    },
    leftovers: () => [".tmp", ".trash"].flatMap((name) => names(join(settings.cacheDir, name))),
    present: () => names(settings.cacheDir).filter((name) => !name.startsWith(".")),
    [Symbol.asyncDispose]: () => removeTree(dir.path),
  };
}

function makeRootfs(path: string, content: string): string {
  for (const name of ["usr/bin", "usr/lib", "bin", "etc", "tmp"]) {
    mkdirSync(join(path, name), { recursive: true });
  }
  appendFileSync(join(path, "etc/content"), content);
  for (let index = 0; index < 100; index++) appendFileSync(join(path, `usr/lib/${index}`), content);
  appendFileSync(join(path, "usr/bin/tool"), "#!/bin/sh\n");
  chmodSync(join(path, "usr/bin/tool"), 0o4755);
  return path;
}

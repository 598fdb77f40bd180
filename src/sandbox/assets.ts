import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import stagePath from "../../dist/stage.bin" with { type: "file" };
import supervisorPath from "../../dist/supervisor.bin" with { type: "file" };
import pythonDriver from "./ipython-driver.py" with { type: "text" };
import { SHELL_RC } from "./shell-rc.ts";

export type Assets = {
  /** The program that lays root file systems ready. */
  stage: string;
  /** What every sandbox finds inside. */
  inside: string[];
};

/**
 * Writes what sandboxes run to disk, since children can't see what is inside our binary. The names carry
 * a hash of the content, so that versions of the service can share the folder.
 */
export function installAssets(folder: string): Assets {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const supervisor = install(folder, "supervisor", readFileSync(supervisorPath), 0o500);
  const driver = install(folder, "ipython-driver.py", Buffer.from(pythonDriver), 0o400);
  const shellRc = install(folder, "shell-rc.bash", Buffer.from(SHELL_RC), 0o400);
  const stage = install(folder, "stage", readFileSync(stagePath), 0o500);
  return { stage, inside: [supervisor, driver, shellRc] };
}

function install(folder: string, name: string, content: Uint8Array, mode: number): string {
  const path = join(folder, `${Bun.SHA256.hash(content, "hex").slice(0, 16)}-${name}`);
  if (existsSync(path)) return path;
  const fresh = `${path}.${crypto.randomUUID()}`;
  writeFileSync(fresh, content);
  chmodSync(fresh, mode);
  renameSync(fresh, path);
  return path;
}

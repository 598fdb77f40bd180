import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

/** How a program may be unusable, made in `folder`. Each is told from the others by its words. */
export function brokenPrograms(folder: string): [what: string, path: string, said: RegExp][] {
  const put = (name: string, content: string | Buffer, mode = 0o755) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  };
  const elf = readFileSync("/bin/true");
  const foreign = Buffer.from(elf);
  foreign.writeUInt16LE(process.arch === "x64" ? 183 : 62, 18);
  const unloadable = Buffer.from(elf);
  const loader = unloadable.indexOf("/ld-linux");
  unloadable.write("/no-linux", loader, "latin1");
  mkdirSync(join(folder, "folder"));
  symlinkSync("nowhere", join(folder, "dangling"));
  copyFileSync("/bin/true", join(folder, "plain"));
  chmodSync(join(folder, "plain"), 0o644);
  return [
    ["without the right to execute", join(folder, "plain"), /may not be executed/],
    ["for another processor", put("foreign", foreign), /another processor/],
    ["without its loader", put("unloadable", unloadable), /loader .* not there/],
    ["a text", put("text", "hello\n"), /is no program/],
    ["empty", put("empty", ""), /is no program/],
    ["cut off", put("cut", elf.subarray(0, 40)), /is no program/],
    ["a folder", join(folder, "folder"), /is a folder/],
    ["a script without its interpreter", put("script", "#!/no/such/sh\n"), /\/no\/such\/sh/],
    ["a link to nothing", join(folder, "dangling"), /is not there/],
    ["missing", join(folder, "missing"), /is not there/],
    ["one that dies", put("dies", "#!/bin/sh\nkill -9 $$\n"), /it ended with 137|ended with/],
  ];
}

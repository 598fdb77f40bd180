import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/**
 * Processes that have anything to do with a folder: they mount it, work in it, or name it in their command
 * line. The folder's name has to be unique on the machine.
 */
export function processesOf(folder: string): string[] {
  const name = folder.split("/").at(-1) as string;
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
    const traces = [command, read(`/proc/${pid}/mountinfo`), link(`/proc/${pid}/cwd`)];
    return traces.some((trace) => trace.includes(name)) ? [`${pid} ${command}`] : [];
  });
}

/** A process that ends while it is looked at has left no trace. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

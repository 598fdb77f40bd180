import { readFileSync } from "node:fs";

/** Below this share of the node's memory it is short of it. */
const TIGHT = 0.1;

/** Units: bytes. Zero where the kernel does not say. */
export function nodeMemory(): { total: number; available: number } {
  const text = readFileSync("/proc/meminfo", "utf8");
  const bytes = (line: RegExp) => 1024 * Number(line.exec(text)?.[1] ?? 0);
  return { total: bytes(/^MemTotal:\s+(\d+)/m), available: bytes(/^MemAvailable:\s+(\d+)/m) };
}

export function isMemoryTight(): boolean {
  const { total, available } = nodeMemory();
  return available < total * TIGHT;
}

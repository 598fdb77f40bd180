import { printError } from "../lib/print.ts";

/** Structured log lines on standard error: one JSON object each, so that nothing logged can forge a line. */
export interface Log {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

export type LogLevel = "info" | "warn" | "error" | "silent";

const RANK: Record<LogLevel, number> = { info: 0, warn: 1, error: 2, silent: 3 };

export function createLog(level: LogLevel): Log {
  const write = (at: Exclude<LogLevel, "silent">, message: string, fields = {}) => {
    if (RANK[at] < RANK[level]) return;
    const line = { time: new Date().toISOString(), level: at, message, ...fields };
    printError(`${JSON.stringify(line)}\n`);
  };
  return {
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
  };
}

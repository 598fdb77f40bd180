import { EXIT } from "./command.ts";

/** What ends a command from outside: Ctrl-C, and `kill` or the end of a Slurm job. */
export const STOPS = ["SIGINT", "SIGTERM"] as const;
export type Stop = (typeof STOPS)[number];

/** The exit code of a command that a signal has ended, as shells have it: 128 and the signal's number. */
export function exitOf(signal: Stop): number {
  return signal === "SIGINT" ? EXIT.interrupted : EXIT.terminated;
}

function leave(): never {
  process.exit(EXIT.interrupted);
}

/** Ctrl-C ends the process with the code of an interrupt, until a command listens to the signal itself. */
export function leaveAtInterrupt(): void {
  stayAtInterrupt();
  process.on("SIGINT", leave);
}

/** From here on the command's own listeners decide what Ctrl-C does. */
export function stayAtInterrupt(): void {
  process.off("SIGINT", leave);
}

/** While it lasts, SIGINT and SIGTERM end nothing by themselves and `listener` hears them. */
export function onStop(listener: (signal: Stop) => void): Disposable {
  stayAtInterrupt();
  for (const signal of STOPS) process.on(signal, listener);
  let isOver = false;
  return {
    [Symbol.dispose]() {
      if (isOver) return;
      isOver = true;
      for (const signal of STOPS) process.off(signal, listener);
      leaveAtInterrupt();
    },
  };
}

import { onStop, type Stop } from "./signals.ts";

/**
 * At the first Ctrl-C, or the SIGTERM by which Slurm ends a job, `end` asks for the end of what runs, and the command
 * goes on to write what there is. A second one ends the command at once.
 */
export function onInterrupt(end: () => Promise<unknown>) {
  let came: Stop | null = null;
  const listening = onStop((signal) => {
    came = signal;
    listening[Symbol.dispose]();
    process.stderr.write("\nrolloutd run: cancelling what is left; once more to leave at once\n");
    // The service that is asked may be gone already.
    end().catch(() => {});
  });
  return {
    get came(): Stop | null {
      return came;
    },
    [Symbol.dispose]: () => listening[Symbol.dispose](),
  };
}

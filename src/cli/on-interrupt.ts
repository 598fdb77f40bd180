import { printError } from "../lib/print.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * At the first Ctrl-C, or the SIGTERM by which Slurm ends a job, `end` asks for the end of what runs, and the command
 * goes on to write what there is. A second one ends the command at once.
 */
export function onInterrupt(end: () => Promise<unknown>) {
  let came = false;
  const onSignal = () => {
    came = true;
    remove();
    printError("\nrolloutd run: cancelling what is left; once more to leave at once\n");
    // The service that is asked may be gone already.
    end().catch(() => {});
  };
  const remove = () => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    get came() {
      return came;
    },
    [Symbol.dispose]: remove,
  };
}

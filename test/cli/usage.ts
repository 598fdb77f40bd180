import { UsageError } from "../../src/cli/flags.ts";

/** How `work` was refused as a mistake of the command line. A bug, or no refusal, fails the test. */
export function usageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error("it was not refused");
}

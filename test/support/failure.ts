import { type ErrorBody, ServiceError } from "../../src/errors.ts";

/** How `work` failed, as the plain data that leaves the service. A bug, or no failure, fails the test. */
export async function failureOf(work: () => unknown): Promise<ErrorBody> {
  try {
    await work();
  } catch (error) {
    if (error instanceof ServiceError) return error.toBody();
    throw error;
  }
  throw new Error("it did not fail");
}

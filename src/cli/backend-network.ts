import { ServiceError } from "../errors.ts";
import { type Network, resolveAllowed } from "../lib/network.ts";

/**
 * Refuses an inference server that is in none of the operator's networks, so that who may add one can't reach a
 * cloud's metadata through it. A name is looked at again for each connection (`Backend.networks`).
 *
 * @throws ServiceError `address_forbidden`, also for a name without an address
 */
export async function requireNetwork(
  url: URL,
  allowed: readonly Network[],
  field: string,
): Promise<void> {
  try {
    await resolveAllowed(url, allowed);
  } catch (error) {
    const mend = "correct it; the operator sets backend_networks";
    const why = error instanceof ServiceError ? error.message : `${url.hostname} has no address`;
    throw new ServiceError("address_forbidden", `${field}: ${why}`, { field, mend, cause: error });
  }
}

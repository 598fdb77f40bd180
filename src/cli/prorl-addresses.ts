import type { Addresses } from "../compat/prorl/gateway.ts";
import { ServiceError } from "../errors.ts";
import type { BackendRegistry } from "../inference/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { NETWORKS, type Network } from "../lib/network.ts";
import type { Store } from "../store/store.ts";
import { requireNetwork } from "./backend-network.ts";
import { backendId, refuseAnother } from "./backend-service.ts";

/** They are not probed, so nothing else would bound what a client in a loop adds. */
const MAX_ADDRESSES = 1000;

/**
 * The addresses that ProRL's clients name, as backends that are not probed: each rollout says itself how they
 * are called. They outlive a restart of the service, as its clients name them only once.
 */
export function prorlAddresses(
  registry: BackendRegistry,
  store: Store,
  clock: Clock,
  changed: () => void,
  networks: readonly Network[] = NETWORKS,
): Addresses {
  const routed = () => registry.list().flatMap(({ backend }) => (backend.routed ? [backend] : []));
  return {
    list: () => routed().map(({ url }) => url),
    async add(address) {
      const url = URL.canParse(address) ? new URL(address) : null;
      if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) {
        const message = "address: must be an http: or https: address without credentials";
        throw new ServiceError("invalid_field", message, { field: "address" });
      }
      await requireNetwork(url, networks, "address");
      const id = backendId(address);
      if (routed().some((known) => known.id === id)) return;
      if (routed().length >= MAX_ADDRESSES) {
        const mend = "POST /clear_llm_server first";
        const message = `address: there are ${MAX_ADDRESSES} already`;
        throw new ServiceError("invalid_field", message, { field: "address", mend });
      }
      const backend = { id, url: address, networks, model: "", routed: true } as const;
      refuseAnother(registry, backend);
      const none = { api_key_env: null, model_dir: null, profile: null, leaving: null };
      const row = { id, url: address, model: "", ...none, added_ms: clock.nowMs(), routed: 1 };
      store.transaction(() => store.backends.save(row));
      registry.add(backend);
      changed();
    },
    clear() {
      const known = routed();
      for (const { id } of known) registry.remove(id);
      store.transaction(() => {
        for (const { id } of known) store.backends.delete(id);
      });
    },
  };
}

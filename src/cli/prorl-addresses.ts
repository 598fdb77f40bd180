import type { Addresses } from "../compat/prorl/gateway.ts";
import { ServiceError } from "../errors.ts";
import type { BackendRegistry } from "../inference/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import { backendId, refuseAnother } from "./backend-service.ts";

/**
 * The addresses that ProRL's clients name, as backends that are not probed: each rollout says itself how they
 * are called. They outlive a restart of the service, as its clients name them only once.
 */
export function prorlAddresses(
  registry: BackendRegistry,
  store: Store,
  clock: Clock,
  changed: () => void,
): Addresses {
  const routed = () => registry.list().flatMap(({ backend }) => (backend.routed ? [backend] : []));
  return {
    list: () => routed().map(({ url }) => url),
    add(address) {
      if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) {
        const message = `not an http: or https: address: ${address}`;
        throw new ServiceError("invalid_field", message, { field: "address" });
      }
      const id = backendId(address);
      if (routed().some((known) => known.id === id)) return;
      const backend = { id, url: address, model: "", routed: true } as const;
      refuseAnother(registry, backend);
      const none = { api_key_env: null, model_dir: null, profile: null, leaving: null };
      const row = { id, url: address, model: "", ...none, added_ms: clock.nowMs(), routed: 1 };
      store.transaction(() => store.saveBackend(row));
      registry.add(backend);
      changed();
    },
    clear() {
      const known = routed();
      for (const { id } of known) registry.remove(id);
      store.transaction(() => {
        for (const { id } of known) store.deleteBackend(id);
      });
    },
  };
}

import type { BackendChooser } from "../../src/pipeline/parts.ts";
import type { AddBackend, Backends, BackendView } from "../../src/server/parts.ts";

/** One backend for every trajectory; nobody calls it, or waits for it longer than is said. */
export function fakeChooser(available = true, waitedMs = () => 0): BackendChooser {
  return {
    available: () => available,
    acquire: () => ({ id: "b", url: "http://127.0.0.1:1/v1", model: "m" }),
    release: () => {},
    receive: () => {},
    waitedMs,
    connect: () => {},
  };
}

/** The inference servers as routes use them: whatever is added is `b1`. */
export function fakeBackends(): Backends {
  const backends: BackendView[] = [];
  return {
    list: () => backends,
    async add({ url, model = "only" }: AddBackend) {
      const counts = { in_flight: 0, turns: 0, state: "healthy", why: null } as const;
      const load = { context_tokens: 0, expected_tokens: 0, running: null, waiting: null };
      const rest = { load: { ...load, kv_use: null }, engine: null, model_dir: null };
      const view = { id: "b1", url, model, ...counts, ...rest };
      backends.push(view);
      return view;
    },
    remove: (id) => backends.splice(0).some((backend) => backend.id === id),
    drain: (id) => backends.some((backend) => backend.id === id),
    decisions: () => [],
  };
}

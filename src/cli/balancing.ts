import type { Config } from "../config/settings.ts";
import { BackendWatch } from "../inference/backend-watch.ts";
import { LoadWatch } from "../inference/load-watch.ts";
import { BackendRegistry } from "../inference/registry.ts";
import { SessionEnds } from "../inference/session-end.ts";
import { TurnDesk } from "../inference/turn-desk.ts";
import { PAUSE_LEASE_MS, Weights, type WeightsRecord } from "../inference/weights.ts";
import type { Clock } from "../lib/clock.ts";
import type { Network } from "../lib/network.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../telemetry/log.ts";
import { backendKeys } from "./backend-keys.ts";
import { createBackends } from "./backend-service.ts";
import { prorlAddresses } from "./prorl-addresses.ts";

const PROBE_TIMEOUT_MS = 10_000;

/** Everything that decides which call goes to which inference server, and when. */
export function startBalancing(
  config: Config,
  { store, clock, log }: { store: Store; clock: Clock; log: Log },
) {
  const health = {
    failuresInARow: config.backend_failures,
    ejectMs: config.backend_eject_ms,
    maxEjectMs: config.backend_max_eject_ms,
  };
  const { balancing: policy, balancing_moves } = config;
  const moves = balancing_moves && policy === "least-work";
  const moreToCome = () => store.counts.waiting("init") + store.counts.waiting("run") > 0;
  const registry = new BackendRegistry({ policy, moves, moreToCome, clock });
  const sessions = new SessionEnds();
  const desk = new TurnDesk({
    ...{ registry, clock, health },
    maxRetries: config.turn_retries,
    backendWaitMs: config.backend_wait_ms,
    maxTurns: config.backend_turns,
    sessionEnded: (backend, jobId) => sessions.tell(backend, jobId),
  });
  const weights = new Weights({
    ...{ desk, clock, record: weightsIn(store) },
    onLapse: ({ mode }) =>
      log.warn("calls go on under weights that nobody knows: a pause lapsed", { mode }),
  });
  const plan = () => desk.plan();
  const networks = config.backend_networks.split(",") as Network[];
  const keys = backendKeys(config, process.env);
  const load = new LoadWatch({
    ...{ registry, clock, health, plan, pollMs: config.load_poll_ms },
    maxTurns: config.backend_turns,
  });
  // Until its memory is known a backend would take on whatever waits.
  const changed = () => {
    load.look();
    plan();
  };
  const backends = createBackends(registry, store, clock, log, keys, changed, networks);
  load.look();
  const addresses = prorlAddresses(registry, store, clock, plan, networks);
  const watch = new BackendWatch({
    ...{ registry, clock, health, plan, probeTimeoutMs: PROBE_TIMEOUT_MS },
    changed: ({ id, profile = null }) =>
      store.transaction(() => store.backends.saveProfile(id, profile)),
  });
  const stop = () => {
    weights[Symbol.dispose]();
    load[Symbol.dispose]();
    sessions[Symbol.dispose]();
    watch[Symbol.dispose]();
    desk[Symbol.dispose]();
  };
  return { desk, backends, weights, addresses, stop };
}

function weightsIn(store: Store): WeightsRecord {
  return {
    announced: () =>
      store.weights.versions().map(({ version, announced_ms: announcedMs }) => {
        return { version, announcedMs };
      }),
    announce: ({ version, announcedMs }) => {
      store.transaction(() => store.weights.add({ version, announced_ms: announcedMs }));
    },
    paused: () => {
      const pause = store.weights.pause();
      // Of a version without leases, whose trainer knows of none.
      return pause?.untilMs === 0 ? { ...pause, leaseMs: PAUSE_LEASE_MS } : pause;
    },
    setPaused: (pause) => store.transaction(() => store.weights.setPause(pause)),
  };
}

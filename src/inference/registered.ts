import { type Admission, UNLIMITED } from "./balance/admission.ts";
import { allowance, type Health, healthy } from "./balance/health.ts";
import type { BackendLoad } from "./balance/placement.ts";
import { NO_THRASH, type Thrash } from "./balance/thrash.ts";
import type { Backend } from "./engine.ts";
import type { InBandLoad } from "./generate.ts";

/** What becomes of the trajectories on a backend that gets no new ones. */
export type Leaving = "finish" | "move";

/** A backend, and all that is known of it now. */
export type Registered = {
  backend: Backend;
  /** Whether new trajectories may come; otherwise what those that are there do. */
  leaving: Leaving | null;
  removed: boolean;
  sameNode: boolean;
  health: Health;
  /** Its answers say that it is another engine than its probe found; it is probed before it goes on. */
  suspect: boolean;
  /** When such a probe last ended. */
  provenMs: number;
  /** Trajectories that live on it, and the sums over them. */
  live: number;
  contextTokens: number;
  expectedTokens: number;
  assigned: number;
  /** Turns of ours that it works on. */
  turns: number;
  /** As its replies or its metrics last had it. */
  engine: InBandLoad | null;
  kvUse: number | null;
  /** Its memory for keys and values; null where it does not say. */
  kvTokens: number | null;
  /** How many turns it may have at once. */
  admission: Admission;
  thrash: Thrash;
  /** When trajectories left because of it. */
  leftAtMs: number[];
};

const NOTHING = { live: 0, contextTokens: 0, expectedTokens: 0, turns: 0 };

/** One that is new, or `known` anew: with its trajectories, but without its past. */
export function registered(backend: Backend, nowMs: number, known?: Registered): Registered {
  const { live, contextTokens, expectedTokens, turns } = known ?? NOTHING;
  return {
    ...{ backend, live, contextTokens, expectedTokens, turns },
    leaving: null,
    removed: false,
    sameNode: isLocal(backend.url),
    health: healthy(nowMs),
    suspect: false,
    provenMs: Number.NEGATIVE_INFINITY,
    assigned: 0,
    engine: null,
    kvUse: null,
    kvTokens: null,
    thrash: NO_THRASH,
    leftAtMs: [],
    admission: UNLIMITED,
  };
}

/** As placement sees it, for a trajectory with so many siblings there. */
export function loadOf(entry: Registered, siblings: number): BackendLoad {
  const { backend, live, contextTokens, expectedTokens, kvUse, sameNode, assigned } = entry;
  const inEngine = entry.engine === null ? 0 : entry.engine.running + entry.engine.waiting;
  return {
    ...{ id: backend.id, live, contextTokens, expectedTokens, kvUse, sameNode, assigned },
    foreign: Math.max(0, inEngine - entry.turns),
    siblings,
  };
}

/** Why it takes no new trajectory; null where it does. */
export function closedBecause({ removed, leaving, health, live }: Registered): string | null {
  if (removed) return "it was removed";
  if (leaving !== null) return "it is drained";
  if (health.state === "ejected") return `it is not healthy: ${health.why}`;
  return live < allowance(health) ? null : "it is tried with a few trajectories first";
}

function isLocal(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

import type { Decision } from "../inference/balance/decision-log.ts";
import type { Registered } from "../inference/registered.ts";
import type { BackendView, DecisionView } from "../server/parts.ts";

export function viewOfBackend(entry: Registered): BackendView {
  const { backend, leaving, health, live, turns, engine, kvUse } = entry;
  const { id, url, model, profile = null, modelDir = null } = backend;
  return {
    ...{ id, url, model },
    in_flight: live,
    turns,
    state: leaving === null ? health.state : "draining",
    why: leaving === null ? health.why : `its trajectories ${leaving}`,
    load: {
      context_tokens: entry.contextTokens,
      expected_tokens: Math.round(entry.expectedTokens),
      running: engine?.running ?? null,
      waiting: engine?.waiting ?? null,
      kv_use: kvUse,
    },
    engine: profile,
    model_dir: modelDir,
  };
}

export function viewOfDecision({ atMs, jobId, backendId, ...rest }: Decision): DecisionView {
  return { at_ms: atMs, job_id: jobId, backend_id: backendId, ...rest };
}

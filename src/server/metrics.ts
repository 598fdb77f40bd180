import { isFinal, isPaused, type Job, STAGES } from "../jobs/job.ts";
import type { GroupEnd } from "../pipeline/event-feed.ts";
import { EventLoopLag } from "../telemetry/event-loop-lag.ts";
import { Exposition, Histogram } from "../telemetry/exposition.ts";
import type { ServerParts } from "./parts.ts";

/** Units: seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];

type Parts = Pick<ServerParts, "store" | "scheduler" | "backends" | "gate" | "version">;

/** What the service does, for Prometheus: counts since its start, and how it stands when asked. */
export class Metrics {
  readonly #parts: Parts;
  readonly #finished = new Map<string, number>();
  readonly #failures = new Map<string, { labels: Record<string, string>; value: number }>();
  readonly #times = STAGES.flatMap((stage) =>
    (["queued", "active"] as const).map((kind) => {
      return { labels: { stage, kind }, histogram: new Histogram(BOUNDS) };
    }),
  );
  readonly #lag = new EventLoopLag();
  readonly #ends = new Map<string, { labels: Record<string, string>; value: number }>();
  #attempts = 0;
  #tokens = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    parts.scheduler.feed.subscribe((job) => this.#note(job));
    parts.scheduler.feed.subscribeEnds((end) => this.#noteEnd(end));
  }

  #note(job: Job): void {
    const { failures } = job;
    const last = failures.at(-1);
    if (last && job.state === "pending" && job.notBeforeMs !== null && !isPaused(job)) {
      this.#attempts++;
      this.#fail(last.error, last.stage, "true");
    }
    if (!isFinal(job)) return;
    this.#finished.set(job.state, (this.#finished.get(job.state) ?? 0) + 1);
    if (job.error && job.state === "failed") this.#fail(job.error, job.stage, "false");
    for (const { labels, histogram } of this.#times) {
      const { queuedMs, activeMs } = job.timings[labels.stage];
      const ms = labels.kind === "queued" ? queuedMs : activeMs;
      if (ms > 0) histogram.observe(ms / 1000);
    }
    this.#tokens += this.#parts.store.sampledTokens(job.id) ?? 0;
  }

  #noteEnd(end: GroupEnd): void {
    const { kind, state } = end;
    const informative = end.kind === "group" ? String(end.informative === true) : "";
    const key = `${kind} ${state} ${informative}`;
    const labels = { kind, state, ...(informative && { informative }) };
    this.#ends.set(key, { labels, value: (this.#ends.get(key)?.value ?? 0) + 1 });
  }

  #fail({ code, boundary }: { code: string; boundary: string }, stage: string, retried: string) {
    const key = `${code} ${stage} ${retried}`;
    const labels = { code, boundary, stage, retried };
    const value = (this.#failures.get(key)?.value ?? 0) + 1;
    this.#failures.set(key, { labels, value });
  }

  text(): string {
    const { store, scheduler, backends, gate, version } = this.#parts;
    const out = new Exposition();
    const one = (name: string, type: "gauge" | "counter", help: string, value: number) =>
      out.metric(name, type, help, [{ value }]);
    out.metric("rolloutd_info", "gauge", "Version.", [{ labels: { version }, value: 1 }]);
    out.metric(
      "rolloutd_jobs",
      "gauge",
      "Unfinished rollouts by stage and state.",
      store.counts.list().map(({ stage, state, count }) => {
        return { labels: { stage, state }, value: count };
      }),
    );
    out.metric(
      "rolloutd_groups",
      "gauge",
      "Unfinished groups and batches by state.",
      store.groupEvents.unfinished().map(({ kind, state, count }) => {
        return { labels: { kind, state }, value: count };
      }),
    );
    one(
      "rolloutd_groups_carried",
      "gauge",
      "Groups that batches which are over have left for others.",
      store.groupEvents.carried(),
    );
    const { alive, parked } = scheduler.pauses;
    out.metric(
      "rolloutd_paused",
      "gauge",
      "Rollouts that wait for another batch, in their sandboxes or with their records alone.",
      Object.entries({ alive, parked }).map(([how, value]) => ({ labels: { how }, value })),
    );
    out.metric(
      "rolloutd_groups_finished_total",
      "counter",
      "Groups and batches that ended since the start, by state.",
      [...this.#ends.values()],
    );
    out.metric(
      "rolloutd_slots_free",
      "gauge",
      "Free slots by stage.",
      STAGES.map((stage) => ({ labels: { stage }, value: scheduler.pools[stage].freeSlots() })),
    );
    const sandboxes = [...scheduler.active.values()].filter(({ handles }) => handles.length > 0);
    one("rolloutd_sandboxes", "gauge", "Sandboxes that rollouts work in.", sandboxes.length);
    out.metric(
      "rolloutd_finished_total",
      "counter",
      "Rollouts that ended since the start, by state.",
      [...this.#finished].map(([state, value]) => ({ labels: { state }, value })),
    );
    out.metric(
      "rolloutd_failures_total",
      "counter",
      "Failed attempts by class; retried says whether another one followed.",
      [...this.#failures.values()],
    );
    one(
      "rolloutd_retries_total",
      "counter",
      "Attempts that followed a failed one.",
      this.#attempts,
    );
    one(
      "rolloutd_sampled_tokens_total",
      "counter",
      "Tokens sampled by finished rollouts.",
      this.#tokens,
    );
    out.histogram("rolloutd_stage_seconds", "Time of finished rollouts by stage.", this.#times);
    const views = backends.list();
    out.metric(
      "rolloutd_backend_in_flight",
      "gauge",
      "Trajectories that live on a backend.",
      views.map(({ id, in_flight }) => ({ labels: { backend: id }, value: in_flight })),
    );
    out.metric(
      "rolloutd_backend_healthy",
      "gauge",
      "1 where a backend is healthy.",
      views.map(({ id, state }) => ({
        labels: { backend: id },
        value: state === "healthy" ? 1 : 0,
      })),
    );
    one("rolloutd_waiting_requests", "gauge", "Requests that wait for a rollout.", gate.waiting);
    one("rolloutd_streams", "gauge", "Streams of events.", gate.streams);
    one(
      "rolloutd_stale_answers_total",
      "counter",
      "Refused answers of old attempts.",
      scheduler.staleAnswers,
    );
    one("rolloutd_callbacks_pending", "gauge", "Callbacks to deliver.", store.callbacks.count());
    one(
      "rolloutd_database_bytes",
      "gauge",
      "What the database holds.",
      store.retention.usedBytes(),
    );
    const lagSeconds = this.#lag.worstMs / 1000;
    one("rolloutd_event_loop_lag_seconds", "gauge", "Worst delay of 15 s.", lagSeconds);
    const { rss, heapUsed } = process.memoryUsage();
    one("process_resident_memory_bytes", "gauge", "Resident memory.", rss);
    one("rolloutd_heap_bytes", "gauge", "JavaScript heap of the main thread.", heapUsed);
    return out.toString();
  }
}

import { terminalText } from "../lib/terminal-text.ts";
import type { BackendView } from "../server/parts.ts";
import type { StatusView } from "./api-client.ts";
import type { ServiceTally } from "./service-tally.ts";
import { formatTable } from "./table.ts";

/** A service at one moment, and what finished since its watcher began. */
export type ServiceState = { status: StatusView; backends: BackendView[]; tally: ServiceTally };

/** For a terminal, to be drawn over itself. */
export function serviceScreen({ status, backends, tally }: ServiceState): string {
  const stages = Object.entries(status.stages).map(([stage, { pending, active, slots }]) => {
    return [stage, String(pending), String(active), String(slots)];
  });
  const servers = backends.map(({ id, model, state, in_flight, turns, why }) => {
    return [id, model, state, String(in_flight), String(turns), why ?? ""].map(plain);
  });
  const header = ["backend", "model", "state", "rollouts", "calls", "why"];
  return [
    `rolloutd ${plain(status.version)}${hints(status, ", ")}\n`,
    formatTable(["stage", "waiting", "at work", "slots"], stages),
    servers.length > 0 ? formatTable(header, servers) : "no backends\n",
    `${finished(tally)}\n${named("failed", tally.failures)}${named("tried again", tally.retried)}`,
  ].join("\n");
}

/** The same in a line. */
export function serviceLine({ status, backends, tally }: ServiceState): string {
  const stages = Object.entries(status.stages).map(
    ([stage, { pending, active, slots }]) => `${stage} ${pending} + ${active}/${slots}`,
  );
  const healthy = backends.filter(({ state }) => state === "healthy").length;
  const codes = [...tally.failures].map(([code, count]) => `${plain(code)} ${count}`);
  const parts = [...stages, `backends ${healthy}/${backends.length}`, finished(tally), ...codes];
  return `${parts.join(" · ")}${hints(status, " · ")}\n`;
}

/** What holds everything up, each behind `separator`. */
function hints({ draining, weights }: StatusView, separator: string): string {
  const drains = draining ? `${separator}draining` : "";
  return weights.paused === null ? drains : `${drains}${separator}paused for new weights`;
}

function finished({ finished, states, meanReward }: ServiceTally): string {
  const { succeeded, failed, cancelled } = states;
  const mean = meanReward === null ? "" : `, mean reward ${meanReward.toFixed(3)}`;
  return `finished ${finished} (${succeeded} scored, ${failed} failed, ${cancelled} cancelled)${mean}`;
}

function named(what: string, counts: Map<string, number>): string {
  if (counts.size === 0) return "";
  const most = [...counts].toSorted(([, a], [, b]) => b - a);
  return `${what}: ${most.map(([code, count]) => `${plain(code)} ${count}`).join(", ")}\n`;
}

/** A server's words must not move the cursor. */
function plain(text: string): string {
  return terminalText(text).replaceAll("\n", " ");
}

import { instanceOf } from "../../src/compat/nemo-gym/instance.ts";
import type { GymServers } from "../../src/compat/nemo-gym/scorer.ts";
import { ServiceError } from "../../src/errors.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { taskKindOf } from "../../src/tasks/registry.ts";
import { calls, type Scripted, says } from "../../test/support/fake-engine.ts";
import { play } from "../../test/support/play.ts";
import { TASK_SETTINGS } from "../../test/support/task-context.ts";
import type { Row } from "./gym_rows.ts";

export type Replay = {
  published: number;
  /** Null where there is none, which `why` explains. */
  reward: number | null;
  why: string;
  /** A published reward above 0 that is 0 here. */
  silent: boolean;
};

type Item = {
  type: string;
  role?: string;
  name?: string;
  arguments?: string;
  content?: string | { text?: string }[];
};

/** A published rollout with its own words, scored as its row is; null where its row is refused or needs a repository. */
export async function replayed(
  rollout: Row,
  rows: readonly Row[],
  servers: GymServers,
  open: () => Promise<Sandbox>,
): Promise<Replay | null> {
  const instance = attempt(() => instanceOf(rowOf(rollout, rows), servers));
  if (instance === null || instance.data_source === "swebench") return null;
  const kind = taskKindOf(instance.data_source);
  const published = rollout.reward as number;
  const settings = settingsFor(servers);
  const { output } = rollout.response as { output: Item[] };
  const unscored = (why: string) => ({ published, reward: null, why, silent: false });
  try {
    const plan = kind.sandboxes(kind.parse(instance), settings);
    const sandbox = plan.evaluation === "fresh" ? await open() : null;
    const isGym = instance.data_source === "nemo_gym";
    const turns = isGym ? turnsOf(output) : [inOne(output, instance.verifier === "tool_calls")];
    const verdict = await play(kind, instance, turns, { settings }).verdict({ sandbox });
    const { reward, rule } = verdict;
    return { published, reward, why: rule, silent: reward === 0 && published > 0 };
  } catch (error) {
    if (error instanceof ServiceError) return unscored(`${error.code}, ${error.message}`);
    if (error instanceof Error && error.message.startsWith("the script has no turn"))
      return unscored("its environment asks for more than what was said");
    throw error;
  }
}

export function settingsFor(servers: GymServers) {
  const http = { ...TASK_SETTINGS.http, allowedUrls: Object.values(servers) };
  return { ...TASK_SETTINGS, http };
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

/** The row of a rollout: the one with its prompt, or what the rollout itself has of one. */
function rowOf(rollout: Row, rows: readonly Row[]): Row {
  const same = rows.filter((row) => promptOf(row) === promptOf(rollout));
  const [first] = rows;
  const own = Object.entries(rollout).filter(([key]) => first && key in first);
  return same.length === 1 ? (same[0] as Row) : Object.fromEntries(own);
}

function promptOf({ responses_create_params: params }: Row): string {
  const { input } = (params ?? {}) as { input?: unknown };
  if (!Array.isArray(input)) return String(input);
  return input
    .map(({ content }) =>
      typeof content === "string"
        ? content
        : (content ?? []).map((part: { text?: string }) => part.text ?? "").join(""),
    )
    .join("\n");
}

/** What the model said, call by call: its items until the next answer of the environment. */
function turnsOf(output: readonly Item[]): Scripted[] {
  const turns: Scripted[] = [];
  let open: Item[] = [];
  const close = () => {
    if (open.length > 0) turns.push(turnOf(open));
    open = [];
  };
  for (const item of output) {
    if (item.type === "function_call_output" || item.role === "user") close();
    else if (item.type !== "reasoning") open.push(item);
  }
  close();
  return turns;
}

/** A check has one message, with all that the model said; tools of the agent that made the rollout are not the row's. */
function inOne(output: readonly Item[], withCalls: boolean): Scripted {
  const kept = ["message", ...(withCalls ? ["function_call"] : [])];
  return turnOf(output.filter(({ type }) => kept.includes(type)));
}

function turnOf(items: readonly Item[]): Scripted {
  const asked = items.flatMap(({ type, name, arguments: args }): [string, unknown][] =>
    type === "function_call" ? [[name ?? "", args ?? ""]] : [],
  );
  const text = items.flatMap(({ content }) =>
    typeof content === "string" ? [content] : (content ?? []).map((part) => part.text ?? ""),
  );
  if (asked.length === 0) return says(text.join(""));
  const reply = calls(...asked);
  return { ...reply, message: { ...reply.message, content: text.join("") } };
}

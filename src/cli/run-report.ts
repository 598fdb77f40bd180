import type { Message } from "../inference/engine.ts";
import { STAGES } from "../jobs/job.ts";
import { terminalText } from "../lib/terminal-text.ts";
import { type EndedRollout, meanReward, type RolloutResult } from "./run-collect.ts";
import { formatTable, seconds } from "./table.ts";

const PROBLEM_WIDTH = 44;

/** Rewards per row with the stages' mean times, and a closing line with the totals. */
export function formatSummary(results: EndedRollout[]): string {
  const rows = [...Map.groupBy(results, ({ row }) => row)].map(([row, group]) => [
    String(row),
    problemOf(group[0] as EndedRollout),
    group.map(outcomeOf).join(" "),
    ...STAGES.map((stage) => seconds(mean(group.map(({ timings }) => timings[stage].active_ms)))),
  ]);
  const header = ["row", "problem", "rewards", "init s", "run s", "eval s"];
  const scored = results.filter(({ reward }) => reward !== null).length;
  const average = meanReward(results);
  const without = results.length - scored;
  const totals = [
    `${scored} of ${results.length} rollouts have a reward`,
    average === null ? "" : `, mean ${average.toFixed(3)}`,
    without === 0 ? "" : `; ${without} ${without === 1 ? "has" : "have"} none: no data to train on`,
  ];
  return `${formatTable(header, rows)}\n${totals.join("")}\n`;
}

function outcomeOf({ reward, error, state }: EndedRollout): string {
  if (reward !== null) return String(reward);
  return error?.code ?? state;
}

export function problemOf({ instance }: Pick<RolloutResult, "instance">): string {
  const { prompt, problem, question, instruction, instance_id, data_source } = instance;
  const first = Array.isArray(prompt) ? prompt[0]?.content : prompt;
  const text = String(
    first ?? problem ?? question ?? instance_id ?? instruction ?? data_source,
  ).replace(/\s+/g, " ");
  return text.length <= PROBLEM_WIDTH ? text : `${text.slice(0, PROBLEM_WIDTH - 1)}…`;
}

/** One rollout for a person to read. */
export function formatTrajectory(result: RolloutResult): string {
  const lines = [`── ${result.id}: ${result.state}, reward ${result.reward ?? "none"}`];
  for (const message of result.trajectory?.messages ?? []) lines.push(...describe(message));
  const { verdict, error } = result;
  if (verdict) lines.push(labelled("verdict", `${verdict.rule}: ${verdict.reason}`));
  if (error) lines.push(labelled("error", `${error.code}: ${error.message}`));
  return `${lines.join("\n")}\n`;
}

function describe(message: Message): string[] {
  const lines = message.content === "" ? [] : [labelled(message.role, message.content)];
  if (message.role !== "assistant") return lines;
  for (const { function: call } of message.tool_calls ?? []) {
    lines.push(labelled("call", `${call.name} ${readable(call.arguments)}`));
  }
  return lines;
}

/** As a terminal would have shown it, without its colours; `print` keeps the rest from being obeyed. */
function labelled(role: string, text: string): string {
  return `  ${role.padEnd(10)}${terminalText(text)
    .trimEnd()
    .split("\n")
    .join(`\n${" ".repeat(12)}`)}`;
}

/** A single text argument is shown as it is, so that code is readable. */
function readable(args: string): string {
  try {
    const values = Object.values(JSON.parse(args));
    return values.length === 1 && typeof values[0] === "string" ? `\n${values[0]}` : args;
  } catch {
    return args;
  }
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

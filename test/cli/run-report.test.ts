import { describe, expect, test } from "bun:test";
import type { RolloutResult } from "../../src/cli/run-collect.ts";
import { formatSummary, formatTrajectory } from "../../src/cli/run-report.ts";
import type { Message } from "../../src/inference/engine.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import { failedView, viewOf } from "./views.ts";

function result(view: RolloutView, row: number, problem: string, messages?: Message[]) {
  const prompt = [{ role: "user", content: problem }];
  const trajectory = messages ? ({ messages } as RolloutResult["trajectory"]) : null;
  const instance = { data_source: "math", prompt };
  return { ...view, row, sample: 0, made_with: {}, instance, trajectory } satisfies RolloutResult;
}

function taking(id: string, initMs: number, reward: number) {
  const time = (active_ms: number) => ({ queued_ms: 9999, active_ms });
  const timings = { init: time(initMs), run: time(2000), eval: time(0) };
  return viewOf(id, { reward, timings });
}

describe("the summary", () => {
  test("has a line per row with its rewards and mean times, and the totals below", () => {
    const results = [
      result(taking("a", 100, 1), 0, "What is\n  1+1?"),
      result(taking("b", 300, 0), 0, "What is 1+1?"),
      result(failedView("c"), 1, "x".repeat(60)),
    ];
    const cut = `${"x".repeat(43)}…`;
    expect(formatSummary(results).split("\n")).toEqual([
      `row  problem${" ".repeat(37)}  rewards         init s  run s  eval s`,
      `  0  What is 1+1?${" ".repeat(32)}  1 0               0.20   2.00    0.00`,
      `  1  ${cut}  engine_timeout    0.00   0.00    0.00`,
      "",
      "2 of 3 rollouts have a reward, mean 0.500; 1 has none: no data to train on",
      "",
    ]);
  });

  test("of results that all have a reward says no more than that", () => {
    const lines = formatSummary([result(viewOf("a"), 0, "p")])
      .trimEnd()
      .split("\n");
    expect(lines.at(-1)).toBe("1 of 1 rollouts have a reward, mean 1.000");
  });

  test("of results without any reward has no mean", () => {
    const lines = formatSummary([result(failedView("a"), 0, "p")])
      .trimEnd()
      .split("\n");
    expect(lines.at(-1)).toBe("0 of 1 rollouts have a reward; 1 has none: no data to train on");
  });

  test.each([
    [{ data_source: "echo" }, "echo"],
    [{ data_source: "math", problem: "What is 1+1?" }, "What is 1+1?"],
    [{ data_source: "gsm8k", question: "How many?" }, "How many?"],
    [{ data_source: "swe", instance_id: "a__b-1", problem_statement: "long" }, "a__b-1"],
  ])("names the problem of %j, whatever its dataset calls it", (instance, shown) => {
    const [, line] = formatSummary([{ ...result(viewOf("a"), 0, ""), instance }]).split("\n");
    expect(line).toStartWith(`  0  ${shown}  `);
  });
});

describe("a trajectory for a person", () => {
  const call = (args: string) =>
    ({
      role: "assistant",
      content: "",
      tool_calls: [{ id: "c", type: "function", function: { name: "run", arguments: args } }],
    }) satisfies Message;
  /** Its lines without the columns, which are a matter of taste. */
  const shown = (view: RolloutView, messages: Message[]) =>
    formatTrajectory(result(view, 0, "p", messages))
      .trimEnd()
      .split("\n")
      .map((line) => line.trim().replace(/ {2,}/g, " "));

  test("shows messages, calls with their code as it is, and the verdict", () => {
    const messages: Message[] = [
      { role: "user", content: "Go.\nNow." },
      call('{"code":"x = 1\\nx"}'),
      { role: "tool", content: "1", tool_call_id: "c" },
      { role: "assistant", content: "Done." },
    ];
    expect(shown(viewOf("a"), messages)).toEqual([
      "── a: succeeded, reward 1",
      "user Go.",
      "Now.",
      "call run",
      "x = 1",
      "x",
      "tool 1",
      "assistant Done.",
      "verdict echo: It says so.",
    ]);
  });

  test("shows arguments that are no single text, or malformed, as the model wrote them", () => {
    const given = ['{"a":"x","b":1}', '{"n":5}', "{oops"];
    const lines = shown(viewOf("a"), given.map(call)).slice(1, -1);
    expect(lines).toEqual(given.map((args) => `call run ${args}`));
  });

  test("of a failed rollout says so, and what went wrong", () => {
    expect(shown(failedView("a"), [{ role: "user", content: "Go." }])).toEqual([
      "── a: failed, reward none",
      "user Go.",
      "error engine_timeout: no answer",
    ]);
  });
});

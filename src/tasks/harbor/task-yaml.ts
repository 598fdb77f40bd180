import { z } from "zod";

/** A task of Terminal-Bench 1: its tests' log is read, by the parser that the task names. */
export type FirstTerminalBench = { parser: "pytest" };

const seconds = z.number().positive().max(86_400);

/** Source: `terminal_bench/handlers/trial_handler.py` of the package `terminal-bench` 0.2. */
const schema = z.looseObject({
  instruction: z.string().min(1),
  parser_name: z.string().default("pytest"),
  max_agent_timeout_sec: seconds.default(360),
  max_test_timeout_sec: seconds.default(60),
  run_tests_in_same_shell: z.boolean().default(false),
});

export type ReadYaml =
  | { instruction: string; agentTimeoutMs: number; testTimeoutMs: number; form: FirstTerminalBench }
  | { problem: string };

export function readTaskYaml(text: string): ReadYaml {
  let yaml: unknown;
  try {
    yaml = Bun.YAML.parse(text);
  } catch (error) {
    return { problem: `is not valid YAML: ${(error as Error).message}` };
  }
  const parsed = schema.safeParse(yaml);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { problem: `${issue?.path.join(".")}: ${issue?.message}` };
  }
  const { instruction, parser_name, run_tests_in_same_shell, ...limits } = parsed.data;
  if (parser_name !== "pytest") {
    return { problem: `asks for the parser "${parser_name}", and pytest's log alone is read here` };
  }
  if (run_tests_in_same_shell) {
    return { problem: "asks for run_tests_in_same_shell, and tests have a shell of their own" };
  }
  return {
    instruction,
    agentTimeoutMs: limits.max_agent_timeout_sec * 1000,
    testTimeoutMs: limits.max_test_timeout_sec * 1000,
    form: { parser: "pytest" },
  };
}

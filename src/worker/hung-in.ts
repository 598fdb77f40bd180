import type { ErrorDetails } from "../errors.ts";
import { terminalText } from "../lib/terminal-text.ts";
import type { TaskKind } from "../tasks/task-kind.ts";
import type { Recorder } from "../trajectory/recorder.ts";

const FUNCTIONS = { init: "init", run: "run", eval: "evaluate" } as const;
/** Of a command, in a message. Units: characters. */
const MAX_COMMAND = 120;

/**
 * Where a stage was when its time was over: `during` for a person, and the call that had not come back. Absent where
 * nothing is known.
 */
export function hungIn(
  stage: keyof typeof FUNCTIONS,
  recorder: Recorder,
  kind: Pick<TaskKind<unknown>, "name" | "module">,
): ErrorDetails | undefined {
  const { doing } = recorder;
  if (stage === "run" && doing?.what === "tool") {
    const { turn, name, forMs: running_ms, arguments: text } = doing;
    const command = excerpt(text);
    return {
      during: `the tool call ${name} of turns[${turn}] (${command}), which ran for ${running_ms} ms`,
      tool_call: { turn, name, arguments: text, running_ms },
    };
  }
  if (stage === "run" && doing?.what === "model") {
    const { turn, forMs: running_ms } = doing;
    const during = `the call of the model for turns[${turn}], which ran for ${running_ms} ms`;
    return { during, model_call: { turn, running_ms } };
  }
  if (kind.module === undefined) return undefined;
  const name = FUNCTIONS[stage];
  return {
    during: `\`${name}\` of the task kind ${kind.name} (${kind.module}), which has not come back`,
    ...{ file: kind.module, function: name },
  };
}

/** The command of a shell call, or the arguments as they are, in one line that a terminal may show. */
function excerpt(text: string): string {
  const line = terminalText(commandOf(text)).replace(/\s+/g, " ").trim();
  return line.length <= MAX_COMMAND ? line : `${line.slice(0, MAX_COMMAND)}…`;
}

function commandOf(text: string): string {
  try {
    const { command, code } = JSON.parse(text) as { command?: unknown; code?: unknown };
    const said = command ?? code;
    return typeof said === "string" ? said : text;
  } catch {
    return text;
  }
}

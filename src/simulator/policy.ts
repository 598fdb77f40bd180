import { z } from "zod";
import { ServiceError } from "../errors.ts";
import type { Asked, Said, SimulatedMessage } from "./conversation.ts";
import { fillIn, placeholderProblem } from "./placeholders.ts";
import { type RandomPolicy, randomTurn } from "./random-policy.ts";
import { type ReplayedPolicy, recordedIn, replayedTurn, replayOf } from "./replayed-policy.ts";

const templateSchema = z.string().superRefine((text, context) => {
  const problem = placeholderProblem(text);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
});

/**
 * Placeholders stand in the strings of arguments, however deep. A plain string is malformed on
 * purpose.
 */
const argumentsSchema = z
  .union([z.record(z.string(), z.json()), z.string()])
  .superRefine((value, context) => {
    JSON.stringify(value, (_key, inner) => {
      const problem = typeof inner === "string" ? placeholderProblem(inner) : null;
      if (problem !== null) context.addIssue({ code: "custom", message: problem });
      return inner;
    });
  });

const turnSchema = z.strictObject({
  content: templateSchema.optional(),
  tool_calls: z
    .array(z.strictObject({ name: z.string().min(1), arguments: argumentsSchema }))
    .optional(),
  finish_reason: z.enum(["stop", "tool_calls", "length", "abort"]).optional(),
  delay_ms: z.number().min(0).optional(),
});

const entrySchema = z.strictObject({
  match: z.string(),
  variants: z.array(z.array(turnSchema).min(1)).min(1),
});

export type ScriptedTurn = z.output<typeof turnSchema>;
export type ScriptEntry = z.output<typeof entrySchema>;

/** `echo` repeats the last user message. */
export type Policy =
  | { kind: "echo" }
  | { kind: "scripted"; entries: ScriptEntry[] }
  | RandomPolicy
  | ReplayedPolicy;

/** A request that the policy has no answer to: for the asker to see, as a 400. */
export class Unscripted extends Error {}

const MAX_SHOWN_CHARS = 200;

/**
 * Reads a policy file: one JSON object per line, of which the first whose `match` is in the first
 * user message answers. A file of recorded rollouts is replayed.
 *
 * @throws ServiceError `invalid_field` that names line and field.
 */
export function parsePolicy(text: string, fileName: string): Policy {
  const entries: ScriptEntry[] = [];
  const recorded: NonNullable<ReturnType<typeof recordedIn>>[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const where = `${fileName}:${index + 1}`;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      throw wrong(where, "line", `not JSON: ${(error as Error).message}`);
    }
    const rollout = recordedIn(value);
    if (rollout) {
      recorded.push(rollout);
      continue;
    }
    const parsed = entrySchema.safeParse(value);
    if (!parsed.success) throw wrongIssue(where, parsed.error.issues[0]);
    entries.push(parsed.data);
  }
  if (recorded.length > 0 && entries.length === 0) return replayOf(recorded);
  if (recorded.length > 0) throw wrong(fileName, "file", "mixes scripts and recorded rollouts");
  if (entries.length === 0) throw wrong(fileName, "file", "holds no policy");
  return { kind: "scripted", entries };
}

/**
 * What the policy says next. It keeps nothing between requests: the turn is the number of assistant
 * messages, the variant `seed % variants.length`, or the first one without a seed.
 *
 * @throws Unscripted
 */
export function nextTurn(
  policy: Policy,
  request: Asked,
  turn: number,
): { said: Said; delayMs: number } {
  const { messages, seed } = request;
  if (policy.kind === "echo") {
    const content = messages.findLast(({ role }) => role === "user")?.content ?? "";
    return { said: { content, toolCalls: [], finishReason: "stop" }, delayMs: 0 };
  }
  const asked = messages.find(({ role }) => role === "user")?.content ?? "";
  if (policy.kind === "replayed") {
    const said = replayedTurn(policy, messages, seed ?? 0, turn);
    if (said) return { said, delayMs: 0 };
    const shown = JSON.stringify(asked.slice(0, MAX_SHOWN_CHARS));
    throw new Unscripted(`no recorded rollout has a turn ${turn + 1} for ${shown}`);
  }
  if (policy.kind === "random") {
    return { said: randomTurn(policy, asked, seed ?? 0, turn), delayMs: 0 };
  }
  const entry = policy.entries.find(({ match }) => asked.includes(match));
  if (!entry) throw unmatched(asked, policy.entries);
  const { match, variants } = entry;
  const index = (((seed ?? 0) % variants.length) + variants.length) % variants.length;
  const scripted = variants[index]?.[turn];
  if (!scripted) {
    const turns = variants[index]?.length;
    const message = `variant ${index} of the scripted policy "${match}" ends after ${turns} turns`;
    throw new Unscripted(`${message}, and turn ${turn + 1} was asked for`);
  }
  return { said: speak(scripted, messages), delayMs: scripted.delay_ms ?? 0 };
}

function speak(scripted: ScriptedTurn, messages: SimulatedMessage[]): Said {
  const { content, tool_calls = [], finish_reason } = scripted;
  const observation = messages.findLast(({ role }) => role === "tool")?.content.trim() ?? null;
  const fill = (text: string) => {
    const filled = fillIn(text, observation);
    if (filled.ok) return filled.text;
    throw new Unscripted(`the scripted policy can't read the observation: ${filled.problem}`);
  };
  return {
    content: content === undefined ? null : fill(content),
    toolCalls: tool_calls.map((call) => ({
      name: call.name,
      arguments:
        typeof call.arguments === "string"
          ? fill(call.arguments)
          : JSON.stringify(call.arguments, (_key, value) =>
              typeof value === "string" ? fill(value) : value,
            ),
    })),
    finishReason: finish_reason ?? (tool_calls.length > 0 ? "tool_calls" : "stop"),
  };
}

function unmatched(asked: string, entries: ScriptEntry[]): Unscripted {
  const shown = JSON.stringify(asked.slice(0, MAX_SHOWN_CHARS));
  const known = entries.map(({ match }) => JSON.stringify(match)).join(", ");
  return new Unscripted(
    `no scripted policy matches the first user message ${shown}; there are: ${known}`,
  );
}

function wrongIssue(where: string, issue: z.core.$ZodIssue | undefined): ServiceError {
  const path = (issue?.path ?? []).map((part, index) => {
    if (typeof part === "number") return `[${part}]`;
    return index === 0 ? String(part) : `.${String(part)}`;
  });
  return wrong(where, path.join("") || "line", issue?.message ?? "invalid");
}

function wrong(where: string, field: string, message: string): ServiceError {
  return new ServiceError("invalid_field", `${where}: ${field}: ${message}`, { field });
}

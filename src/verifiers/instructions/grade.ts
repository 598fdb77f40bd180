import { afterThinking } from "../after-thinking.ts";
import type { Verdict } from "../verdict.ts";
import { CHECKS } from "./checks.ts";
import { LANGUAGES } from "./text.ts";

export type Instruction = { id: string; args: Record<string, unknown> };

/** Why an instruction can't be checked; null where it can. */
export function uncheckable({ id, args }: Instruction): string | null {
  if (!Object.hasOwn(CHECKS, id)) return `there is no instruction ${id}`;
  if (id !== "language:response_language" || LANGUAGES.includes(String(args.language))) return null;
  return `the language ${args.language} can't be told by its script`;
}

/** @param grading `all`: 1 only if every instruction is followed; `share`: the share of them */
export function gradeInstructions(
  instructions: readonly Instruction[],
  message: string | null,
  grading: "all" | "share",
): Verdict {
  const text = afterThinking(message ?? "");
  if (text.trim() === "") return { reward: 0, rule: "no_answer", reason: "There is no answer." };
  const broken = instructions.filter(({ id, args }) => !CHECKS[id]?.(text, args));
  const details = { broken: broken.map(({ id }) => id) };
  if (broken.length === 0) {
    const reason = `All ${instructions.length} instructions are followed.`;
    return { reward: 1, rule: "instructions_followed", reason };
  }
  const share = (instructions.length - broken.length) / instructions.length;
  const reason = `Not followed: ${details.broken.join(", ")}.`;
  return { reward: grading === "share" ? share : 0, rule: "instructions_broken", reason, details };
}

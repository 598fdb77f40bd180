import { afterThinking } from "../after-thinking.ts";
import type { Verdict } from "../verdict.ts";
import { CHECKS } from "./checks.ts";
import { checkedLanguage, languageShares } from "./language.ts";

export type Instruction = { id: string; args: Record<string, unknown> };

const LANGUAGE = "language:response_language";

/** Why an instruction can't be checked; null where it can. */
export function uncheckable({ id, args }: Instruction): string | null {
  if (!Object.hasOwn(CHECKS, id)) return `there is no instruction ${id}`;
  if (id !== LANGUAGE || checkedLanguage(args.language) !== null) return null;
  return `texts in the language ${args.language} can't be told from others`;
}

/** @param grading `all`: 1 only if every instruction is followed; `share`: the share of them */
export async function gradeInstructions(
  instructions: readonly Instruction[],
  message: string | null,
  grading: "all" | "share",
): Promise<Verdict> {
  const text = afterThinking(message ?? "");
  if (text.trim() === "") return { reward: 0, rule: "no_answer", reason: "There is no answer." };
  const followed = await Promise.all(instructions.map(({ id, args }) => CHECKS[id]?.(text, args)));
  const broken = instructions.filter((_, index) => followed[index] !== true).map(({ id }) => id);
  if (broken.length === 0) {
    const reason = `All ${instructions.length} instructions are followed.`;
    return { reward: 1, rule: "instructions_followed", reason };
  }
  const share = (instructions.length - broken.length) / instructions.length;
  const details = broken.includes(LANGUAGE)
    ? { broken, languages: Object.fromEntries(await languageShares(text)) }
    : { broken };
  const reason = `Not followed: ${broken.join(", ")}.`;
  return { reward: grading === "share" ? share : 0, rule: "instructions_broken", reason, details };
}

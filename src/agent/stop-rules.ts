/** One tool call with what came of it, as text that can be compared. */
export type Step = { action: string; observation: string; ok: boolean };

type Thresholds = { sameStep: number; sameFailingAction: number; sameMessage: number };

/** Numbers from OpenHands' stuck detector, which the field's prompts are tuned for. */
const THRESHOLDS: Record<"normal" | "strict", Thresholds> = {
  normal: { sameStep: 4, sameFailingAction: 3, sameMessage: 3 },
  strict: { sameStep: 2, sameFailingAction: 2, sameMessage: 2 },
};
const ALTERNATING_STEPS = 6;

/** True when the agent repeats itself: identical steps, one failing action, or two steps in turn. */
export function isLooping(
  steps: readonly Step[],
  mode: "off" | "normal" | "strict" = "normal",
): boolean {
  if (mode === "off") return false;
  const { sameStep, sameFailingAction } = THRESHOLDS[mode];
  return (
    lastAre(steps, sameStep, equalSteps) ||
    lastAre(steps, sameFailingAction, sameFailure) ||
    alternating(steps)
  );
}

/** @param messages of the model, in a row, without a tool call between them */
export function isRepeating(
  messages: readonly string[],
  mode: "off" | "normal" | "strict",
): boolean {
  if (mode === "off") return false;
  return lastAre(messages, THRESHOLDS[mode].sameMessage, (a, b) => a === b);
}

function lastAre<T>(items: readonly T[], count: number, same: (a: T, b: T) => boolean): boolean {
  const last = items.slice(-count);
  return last.length === count && last.every((item) => same(item, last[0] as T));
}

function sameFailure(a: Step, b: Step): boolean {
  return !a.ok && a.action === b.action;
}

function alternating(steps: readonly Step[]): boolean {
  const last = steps.slice(-ALTERNATING_STEPS);
  if (last.length < ALTERNATING_STEPS) return false;
  const [first, second] = last as [Step, Step];
  if (equalSteps(first, second)) return false;
  return last.every((step, index) => equalSteps(step, index % 2 === 0 ? first : second));
}

function equalSteps(a: Step, b: Step): boolean {
  return a.action === b.action && a.observation === b.observation;
}

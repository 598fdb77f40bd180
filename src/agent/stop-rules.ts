/** One tool call with what came of it, as text that can be compared. */
export type Step = { action: string; observation: string; ok: boolean };

/** Numbers from OpenHands' stuck detector, which the field's prompts are tuned for. */
const SAME_STEP = 4;
const SAME_FAILING_ACTION = 3;
const ALTERNATING_STEPS = 6;

/** True when the agent repeats itself: identical steps, one failing action, or two steps in turn. */
export function isLooping(steps: readonly Step[]): boolean {
  return sameStep(steps) || sameFailingAction(steps) || alternating(steps);
}

function sameStep(steps: readonly Step[]): boolean {
  const last = steps.slice(-SAME_STEP);
  return last.length === SAME_STEP && last.every((step) => equalSteps(step, last[0] as Step));
}

function sameFailingAction(steps: readonly Step[]): boolean {
  const last = steps.slice(-SAME_FAILING_ACTION);
  if (last.length < SAME_FAILING_ACTION) return false;
  return last.every((step) => !step.ok && step.action === last[0]?.action);
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

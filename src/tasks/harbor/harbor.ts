import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import { putArtefacts } from "../command/artefacts.ts";
import { needSandbox } from "../need-sandbox.ts";
import { fillImageTemplate, type SandboxPlan } from "../sandbox-plan.ts";
import type { TaskSettings } from "../settings.ts";
import type { EvalContext, RunContext, TaskKind } from "../task-kind.ts";
import { takePublished } from "./artefacts.ts";
import { LOGS, SHORT } from "./folders.ts";
import { hostValues } from "./host-values.ts";
import { waitForHealth } from "./prepare.ts";
import { type HarborInstance, type HarborStep, parseHarborRow } from "./row.ts";
import { runSolution } from "./solution.ts";
import { Steps, type VerifiedStep } from "./steps.ts";
import system from "./system.md" with { type: "text" };
import { verdictOf, verdictOfSteps } from "./verdict.ts";
import { endProcesses, verifyStep } from "./verify.ts";

const USER = "{{instruction}}";
const MAX_TURNS = 50;

/** A task folder of Harbor's or Terminal-Bench's format, in its own image, scored by its own tests. */
export const harbor: TaskKind<HarborInstance> = {
  name: "harbor",
  dataSources: ["harbor", "terminal-bench", "terminal_bench"],
  needsBackend: true,
  tools: ["execute_bash", "str_replace_editor", "think", "finish"],
  parse: parseHarborRow,
  sandboxes: planOf,

  async init({ workdir, healthcheck }, sandbox, signal) {
    const inside = needSandbox(sandbox);
    await inside.exec(["mkdir", "-p", workdir, ...LOGS], { ...SHORT, signal });
    if (healthcheck) await waitForHealth(healthcheck, workdir, inside, signal);
  },

  async run(instance, context) {
    const { workdir, separate } = instance;
    const sandbox = needSandbox(context.sandbox);
    const steps = isInSteps(instance) ? new Steps(instance, context, sandbox) : null;
    const { instruction } = (await steps?.begin()) ?? onlyStep(instance);
    const { stopReason, finalMessage } = await context.agent({
      prompt: { texts: { system, user: USER }, fields: { instruction, workdir } },
      tools: harbor.tools,
      workdir,
      maxTurns: MAX_TURNS * instance.steps.length,
      ...(steps && { onFinish: () => steps.next() }),
    });
    await steps?.end();
    context.agentDone();
    const { turns } = context.recorder;
    const outcome: Outcome = { stop_reason: stopReason, final_message: finalMessage, turns };
    if (steps) return { ...outcome, state: { steps: steps.verified } };
    if (!separate) return outcome;
    return { ...outcome, ...(await takePublished(separate, workdir, sandbox, context.signal)) };
  },

  needSolution({ steps }) {
    const lacking = steps.find((step) => scriptOf(step) === null);
    if (!lacking) return;
    const field = lacking.name === null ? "solution" : `steps.${lacking.name}.solution`;
    const message = `instance.${field} lacks solve.sh`;
    throw new ServiceError("invalid_field", message, { field: `instance.${field}` });
  },

  solve: (instance, context, part) => solve(instance, context, part),

  async evaluate(instance, outcome, context) {
    if (isInSteps(instance)) return verdictOfSteps(instance, stepsOf(outcome));
    const { signal } = context;
    const sandbox = needSandbox(context.sandbox);
    if (instance.separate) {
      await sandbox.exec(["mkdir", "-p", instance.workdir, ...LOGS], { ...SHORT, signal });
      await putArtefacts(sandbox, outcome.files ?? [], signal);
    } else await endProcesses(sandbox, signal);
    return verdictOf(instance, await verifyOnly(instance, sandbox, context));
  },
};

function planOf(instance: HarborInstance, settings: TaskSettings): SandboxPlan {
  const { name, separate, memoryBytes, diskBytes, hasDockerfile, network } = instance;
  if (network && settings.network === "refuse") throw noNetwork(network);
  const env = hostValues(instance.env, "environment.env", settings.envs);
  for (const { verifierEnv } of instance.steps) {
    hostValues(verifierEnv, "verifier.env", settings.envs);
  }
  const ofKind = settings.images.harbor;
  return {
    agent: true,
    evaluation: isInSteps(instance) ? "none" : separate ? "fresh" : "agent",
    image: ofKind === undefined ? instance.image : fillImageTemplate(ofKind, { name }),
    env,
    ...(separate?.image && { evaluationImage: separate.image }),
    ...(separate?.env && {
      evaluationEnv: hostValues(separate.env, "verifier.environment.env", settings.envs),
    }),
    limits: {
      ...(memoryBytes !== null && { memoryBytes }),
      ...(diskBytes !== null && { diskBytes }),
    },
    ...(hasDockerfile && { ownImage: BUILT }),
  };
}

/** Docker builds images; clusters have none. */
const BUILT = {
  why: "the task's image is to be built of environment/Dockerfile, and rolloutd builds none",
  mend: "build it where Docker is and name it: docker_image in task.toml, `image` in the rollout, or --task-images harbor=IMAGE, which may have {name} of the task in it",
};

function noNetwork(field: string): ServiceError {
  const message = `the task asks for a network (${field}), and sandboxes have none`;
  const mend =
    "start the service with --task-network without, and try the task's solution with `run --golden`";
  return new ServiceError("invalid_field", message, { field: "instance", mend });
}

function isInSteps({ steps }: HarborInstance): boolean {
  return steps[0]?.name !== null;
}

function onlyStep({ steps }: HarborInstance): HarborStep {
  return steps[0] as HarborStep;
}

function scriptOf({ solution }: HarborStep): "solve.sh" | "solution.sh" | null {
  if (solution?.["solve.sh"]) return "solve.sh";
  return solution?.["solution.sh"] ? "solution.sh" : null;
}

async function solve(instance: HarborInstance, context: RunContext, part: number): Promise<void> {
  const step = instance.steps[part] as HarborStep;
  const env = hostValues(instance.solutionEnv, "solution.env", context.settings.envs);
  const script = scriptOf(step) ?? "solve.sh";
  await runSolution(
    step,
    script,
    instance.workdir,
    env,
    needSandbox(context.sandbox),
    context.signal,
  );
}

function verifyOnly(instance: HarborInstance, sandbox: Sandbox, context: EvalContext) {
  const step = onlyStep(instance);
  const env = hostValues(step.verifierEnv, "verifier.env", context.settings.envs);
  return verifyStep(step, instance, env, sandbox, context.signal);
}

function stepsOf(outcome: Outcome): VerifiedStep[] {
  return (outcome.state as { steps: VerifiedStep[] }).steps;
}

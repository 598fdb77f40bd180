import { ServiceError } from "../errors.ts";

/** Which sandboxes an instance is given. */
export type SandboxPlan = {
  /** Whether INIT makes one, in which the agent works. */
  agent: boolean;
  /**
   * What EVAL works in. `fresh`: another one of the same image, which the agent never saw. `agent`: the
   * agent's own, with whatever the agent left running in it; the job can then not be scored again.
   */
  evaluation: "none" | "fresh" | "agent";
  /** The image that the row asks for, unless the rollout names one. Null: the service's default. */
  image: string | null;
  /** The image of EVAL's fresh sandbox, where it differs from the agent's. */
  evaluationImage?: string;
  /** Variables of every command in the agent's sandbox. */
  env?: Record<string, string>;
  /** Variables of every command in EVAL's fresh sandbox; without it `env`. */
  evaluationEnv?: Record<string, string>;
  /** Bounds that the instance asks for, at most the service's own. Units: bytes. */
  limits?: { memoryBytes?: number; diskBytes?: number };
  /** Why the service's default image cannot stand for the instance's own. */
  ownImage?: { why: string; mend: string };
};

/** The plan of a kind that needs no sandbox at all. */
export const NO_SANDBOX: SandboxPlan = { agent: false, evaluation: "none", image: null };

export function usesSandbox({ agent, evaluation }: SandboxPlan): boolean {
  return agent || evaluation !== "none";
}

/**
 * The image of a job: what the rollout names, else the row, else the service's default.
 *
 * @throws ServiceError `image_not_found`
 */
export function chooseImage(
  plan: SandboxPlan,
  ofRollout: string | undefined,
  ofService: string | null,
): string {
  const image = ofRollout ?? plan.image ?? (plan.ownImage ? null : ofService);
  if (image !== null) return image;
  if (plan.ownImage) {
    const { why, mend } = plan.ownImage;
    throw new ServiceError("image_not_found", why, { mend });
  }
  throw new ServiceError("image_not_found", "the job names no image and there is no default", {
    mend: "start rolloutd with --image DIR, or set `image` in the rollout",
  });
}

/**
 * Fills `{name}` in a template of image references with a row's fields.
 *
 * @throws ServiceError `invalid_field` where the row lacks one that the template asks for.
 */
export function fillImageTemplate(template: string, fields: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_whole, name: string) => {
    if (Object.hasOwn(fields, name)) return fields[name] as string;
    const message = `the image template "${template}" asks for {${name}}, which the row does not have`;
    throw new ServiceError("invalid_field", message, { field: `instance.${name}` });
  });
}

import { type HarborRow, isSeparate, wrong } from "./row.ts";
import type { TaskToml } from "./task-toml.ts";

const ROOT: unknown[] = [undefined, "root", 0, "0"];

/**
 * Refuses what a task asks for and no sandbox here has, by the field's name: run without it, its reward would say
 * nothing.
 *
 * @param task null for a task of Terminal-Bench 1, which has no such fields
 * @throws ServiceError `invalid_field`
 */
export function refuseWhatIsMissing(row: HarborRow, task: TaskToml | null): void {
  const services = row.compose ? servicesOf(row.compose) : [];
  if (services.length > 1) {
    const what = `starts ${services.length} containers (${services.join(", ")})`;
    throw wrong("compose", `${what}, and a rollout has one sandbox`);
  }
  if (task === null) return;
  const { environment, agent, verifier, steps = [], artifacts } = task;
  const refuse = (field: string, why: string) => {
    throw wrong("task_toml", `asks for ${field}, ${why}`);
  };
  if (environment.gpus) refuse("environment.gpus", "and sandboxes have no GPU");
  if (environment.tpu) refuse("environment.tpu", "and sandboxes have no TPU");
  if (environment.os && environment.os.toLowerCase() !== "linux") {
    refuse("environment.os", `"${environment.os}", and sandboxes are Linux`);
  }
  if (environment.mcp_servers?.length) {
    refuse("environment.mcp_servers", "which the service's operator names with --mcp-servers");
  }
  const users = {
    "agent.user": agent.user,
    "verifier.user": verifier.user,
    ...Object.fromEntries(
      steps.flatMap((step) => [
        [`steps.${step.name}.agent.user`, step.agent.user],
        [`steps.${step.name}.verifier.user`, step.verifier.user],
      ]),
    ),
  };
  for (const [field, user] of Object.entries(users)) {
    if (!ROOT.includes(user)) refuse(field, `"${user}", and a rootless sandbox has root alone`);
  }
  const sources = [...artifacts, ...steps.flatMap((step) => step.artifacts)];
  for (const { source, service = "main" } of sources) {
    if (service !== "main") refuse("artifacts", `of the container "${service}"`);
    if (!source.startsWith("/")) refuse("artifacts", `"${source}", which is no absolute path`);
    if (source.split("/").includes("..")) refuse("artifacts", `"${source}", which leads upwards`);
  }
  for (const { service } of verifier.collect) {
    if (service !== "main") refuse("verifier.collect", `in the container "${service}"`);
  }
  if (row.tests?.Dockerfile && isSeparate(verifier)) {
    refuse("a verifier of tests/Dockerfile", "which is not built here: set its docker_image");
  }
  if (steps.length > 0 && [verifier, ...steps.map((step) => step.verifier)].some(isSeparate)) {
    refuse("steps with a separate verifier", "and steps are verified in the agent's sandbox");
  }
}

/** Of a docker-compose file; one that can't be read counts as none, as nothing is started of it. */
function servicesOf(compose: string): string[] {
  try {
    const { services } = Bun.YAML.parse(compose) as { services?: object };
    return Object.keys(services ?? {});
  } catch {
    return [];
  }
}

import { fillImageTemplate } from "../sandbox-plan.ts";
import type { SweInstance } from "./row.ts";

/**
 * Where the collections publish their images. `task_images` replaces it, as `swe=TEMPLATE`, with `{instance_id}`,
 * `{image_id}` (lower case, `__` as `_s_`), `{docker_id}` (lower case, `__` as `_1776_`), `{repo}`, `{version}`
 * and `{image}` (what the row names) as fields.
 */
export function imageOf(instance: SweInstance, template: string | undefined): string | null {
  if (template !== undefined) return fillImageTemplate(template, fieldsOf(instance));
  if (instance.image) return referenceOf(instance.image);
  const { image_id: id, docker_id: multimodal } = fieldsOf(instance);
  return instance.collection === "multimodal"
    ? `docker://docker.io/swebench/sweb.eval.x86_64.${multimodal}:latest`
    : `docker://xingyaoww/sweb.eval.x86_64.${id}`;
}

function fieldsOf({ id, repo, version, image }: SweInstance): Record<string, string> {
  const lower = id.toLowerCase();
  return {
    instance_id: id,
    image_id: lower.replaceAll("__", "_s_"),
    docker_id: lower.replace(/_0$/, "").replaceAll("__", "_1776_"),
    repo,
    version,
    ...(image ? { image } : {}),
  };
}

/**
 * Rows name images as Docker does; a path, another kind of reference, and a name of `rolloutd images` stay. Earlier rows of
 * SWE-smith leave out whose images they are, and how Docker Hub spells `__`.
 */
function referenceOf(image: string): string {
  if (/^swesmith\.x86_64\.[^/:]+$/.test(image)) {
    return `docker://jyangballin/${image.replaceAll("__", "_1776_")}`;
  }
  const stays = image.startsWith("/") || image.includes("://") || !image.includes("/");
  return stays ? image : `docker://${image}`;
}

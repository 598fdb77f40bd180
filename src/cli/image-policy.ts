import { dirname, resolve } from "node:path";
import type { Config } from "../config/settings.ts";
import { allowing, type ImagePolicy } from "../sandbox/images/image-policy.ts";
import { parseRegistries } from "../sandbox/images/registry/registries.ts";
import { imageArgument } from "./image-argument.ts";
import { listed, taskImages } from "./task-settings.ts";

/**
 * Which images rows and requests may name: those of the operator's lists, and what the other settings name. A template
 * of `task_images` allows its own registry or folder, with whatever a row puts in.
 *
 * @throws ServiceError `invalid_field`
 */
export function imagePolicy(config: Config): ImagePolicy {
  const templates = Object.values(taskImages(config));
  const isWhole = (template: string) => !template.includes("{");
  const filled = templates.filter((template) => !isWhole(template));
  const own = config.image === undefined ? [] : [imageArgument(config.image, "image")];
  const folders = listed(config.image_dirs ?? "").map((path) => resolve(path));
  return {
    named: [...own, ...templates.filter(isWhole)],
    folders: [...folders, ...filled.flatMap(folderOf)],
    registries: filled.reduce(
      (known, template) => withRegistryOf(template, known),
      parseRegistries(config.registries ?? ""),
    ),
  };
}

/** The part of a template's path that no row can change. */
function folderOf(template: string): string[] {
  const [literal = ""] = template.replace(/^(docker|oci)-archive:/, "").split("{");
  return literal.startsWith("/") ? [dirname(`${literal}x`)] : [];
}

function withRegistryOf(template: string, known: ImagePolicy["registries"]) {
  const isHosted = /^(docker|oras):\/\/[^/{]+\//.test(template);
  if (!isHosted) return [...known];
  const example = template.replace(/\{\w+\}/g, "x");
  return [...allowing(example, { named: [], folders: [], registries: known }).registries];
}

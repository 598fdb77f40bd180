import { ServiceError } from "../../errors.ts";
import { ChatTemplate, type Template } from "./chat-template.ts";
import type { ModelFolder } from "./model-folder.ts";

/** For conversations with tools, where a folder has one of that name; so do transformers and the engines on it. */
const WITH_TOOLS = "tool_use";

export type FolderTemplate = {
  template: Template;
  /** The one that shows calls. */
  calling: Template;
};

/**
 * The chat template of a folder, or of its several ones those that transformers would take.
 *
 * @param name takes that one for everything
 * @throws ServiceError `model_folder_invalid`
 */
export function folderTemplate(folder: ModelFolder, name?: string): FolderTemplate {
  if (name !== undefined) return alone(named(folder, name));
  const withTools = folder.templates.has(WITH_TOOLS) ? named(folder, WITH_TOOLS) : null;
  if (!withTools) return alone(named(folder, "default"));
  if (!folder.templates.has("default")) return alone(withTools);
  const plain = named(folder, "default");
  const template: Template = {
    text: withTools.text,
    render: (messages, tools, options) =>
      (tools.length > 0 ? withTools : plain).render(messages, tools, options),
  };
  return { template, calling: withTools };
}

function alone(template: Template): FolderTemplate {
  return { template, calling: template };
}

function named({ path, templates, specialTokens }: ModelFolder, name: string): ChatTemplate {
  const found = templates.get(name);
  if (found) return new ChatTemplate(found.text, `${path}/${found.file}`, specialTokens);
  const mend = `name one of them: ${[...templates.keys()].join(", ")}`;
  const message = `${path} has no chat template "${name}"`;
  throw new ServiceError("model_folder_invalid", message, { mend });
}

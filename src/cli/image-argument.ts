import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ServiceError } from "../errors.ts";
import { imageSchema } from "../protocol/rollout.ts";
import { UsageError } from "./flags.ts";

/**
 * An image as a person writes it: a path may be relative to the working directory.
 * @throws ServiceError `invalid_field`
 */
export function imageArgument(text: string, field: string): string {
  const image = absolute(text);
  const parsed = imageSchema.safeParse(image);
  if (parsed.success) return image;
  const why = parsed.error.issues[0]?.message ?? "is no image";
  throw new ServiceError("invalid_field", `${field}: ${why}`, { field });
}

/** The image of a command line. @throws UsageError */
export function imageFlag(text: string): string {
  try {
    return imageArgument(text, "--image");
  } catch (error) {
    throw error instanceof ServiceError
      ? new UsageError(`--image "${text}" ${error.message}`)
      : error;
  }
}

function absolute(text: string): string {
  const [, format, path] = /^((?:docker|oci)-archive:)(.+)$/s.exec(text) ?? [];
  if (format && path) return format + resolve(path);
  const isPath = /^\.\.?(\/|$)/.test(text) || (text.includes("/") && !text.includes("://"));
  return isPath || (text.includes(".") && existsSync(text)) ? resolve(text) : text;
}

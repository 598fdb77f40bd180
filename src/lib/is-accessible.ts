import { accessSync } from "node:fs";

/** Whether this process may, as the kernel says. @param mode of `node:fs` constants, such as `W_OK` */
export function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

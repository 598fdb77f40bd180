/** Where in a value something is, as people write it: `rollouts[2].limits.run_ms`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => {
      if (typeof part === "number") return `[${part}]`;
      return index === 0 ? String(part) : `.${String(part)}`;
    })
    .join("");
}

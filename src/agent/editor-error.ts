/** What the model asked of the editor can't be done; it is told. */
export class EditorError extends Error {
  static invalid(parameter: string, value: unknown, hint: string): EditorError {
    const shown = Array.isArray(value) ? pythonList(value) : String(value);
    return new EditorError(`Invalid \`${parameter}\` parameter: ${shown}. ${hint}`);
  }

  static missing(command: string, parameter: string): EditorError {
    return new EditorError(`Parameter \`${parameter}\` is required for command: ${command}.`);
  }
}

/** As the prompts of clients know it: `[1, 2]`. */
export function pythonList(values: readonly unknown[]): string {
  return `[${values.join(", ")}]`;
}

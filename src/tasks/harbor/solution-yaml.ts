import { z } from "zod";

const commands = z.array(
  z.looseObject({ command: z.string(), append_enter: z.boolean().default(true) }),
);

/** Terminal-Bench 1's `solution.yaml`, keys for a terminal, as a script; null where it is more than commands. */
export function scriptOfCommands(yaml: string): string | null {
  let value: unknown;
  try {
    value = Bun.YAML.parse(yaml);
  } catch {
    return null;
  }
  const { data } = commands.safeParse(value);
  if (!data?.every(({ append_enter }) => append_enter)) return null;
  return `#!/bin/bash\n${data.map(({ command }) => command).join("\n")}\n`;
}

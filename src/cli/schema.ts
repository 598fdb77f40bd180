import { protoText } from "../protocol/trajectory-protobuf.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra, UsageError } from "./flags.ts";

const SCHEMAS: Record<string, { what: string; print(): string }> = {
  proto: { what: "a trajectory as protobuf (application/x-protobuf)", print: () => protoText },
};

export const schemaCommand: Command = {
  name: "schema",
  summary: "print the schemas of what the service speaks",
  help: `Usage: rolloutd schema NAME

${Object.entries(SCHEMAS)
  .map(([name, { what }]) => `  ${name.padEnd(8)}${what}`)
  .join("\n")}
`,
  async run(argv) {
    const { positionals } = parseFlags(argv, {});
    refuseExtra(positionals, 1);
    const schema = SCHEMAS[positionals[0] ?? ""];
    if (!schema) throw new UsageError(`name one of: ${Object.keys(SCHEMAS).join(", ")}`);
    process.stdout.write(schema.print());
    return EXIT.done;
  },
};

import { print } from "../lib/print.ts";
import { protoText } from "../protocol/trajectory-protobuf.ts";
import { openApiDocument } from "../server/openapi/document.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra, UsageError } from "./flags.ts";
import { configSchema } from "./settings.ts";
import { VERSION } from "./version.ts";

const SCHEMAS: Record<string, { what: string; print(): string }> = {
  openapi: {
    what: "the HTTP API as OpenAPI 3.1",
    print: () => `${JSON.stringify(openApiDocument(VERSION), null, 2)}\n`,
  },
  config: {
    what: "the settings as JSON schema",
    print: () => `${JSON.stringify(configSchema(), null, 2)}\n`,
  },
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
    const name = positionals[0] ?? "";
    const schema = Object.hasOwn(SCHEMAS, name) ? SCHEMAS[name] : undefined;
    if (!schema) throw new UsageError(`name one of: ${Object.keys(SCHEMAS).join(", ")}`);
    print(schema.print());
    return EXIT.done;
  },
};

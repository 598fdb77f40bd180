import manifest from "../../package.json";
import { print } from "../lib/print.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra } from "./flags.ts";

export const VERSION = manifest.version;

export const versionCommand: Command = {
  name: "version",
  summary: "print the version",
  help: "Usage: rolloutd version [--json]\n\n  --json   one JSON object with the runtime's version too\n",
  async run(argv) {
    const { values, positionals } = parseFlags(argv, { json: { type: "boolean" } });
    refuseExtra(positionals, 0);
    const text = values.json
      ? JSON.stringify({ rolloutd: VERSION, bun: Bun.version, platform: process.platform })
      : `rolloutd ${VERSION}`;
    print(`${text}\n`);
    return EXIT.done;
  },
};

import python from "../clients/rolloutd.py" with { type: "text" };
import { print } from "../lib/print.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, UsageError } from "./flags.ts";

const CLIENTS = new Map([["python", python]]);

export const clientCommand: Command = {
  name: "client",
  summary: "print the Python client",
  help: `Usage: rolloutd client python > rolloutd.py

Prints a client as one file that needs nothing but Python 3.8 or later and its standard library (msgpack
is used for trajectories where it is installed). Put it beside your trainer and \`import rolloutd\`.
`,
  async run(argv) {
    const { positionals } = parseFlags(argv, {});
    const [language = "", ...extra] = positionals;
    const text = extra.length === 0 ? CLIENTS.get(language) : undefined;
    if (text === undefined) {
      throw new UsageError(`name one of: ${[...CLIENTS.keys()].join(", ")}`);
    }
    print(text);
    return EXIT.done;
  },
};

import type { Command } from "./command.ts";
import { parseFlags, refuseExtra, UsageError, wholeNumber } from "./flags.ts";
import { serveCommand } from "./serve.ts";

/** Upstream's flags that are whole numbers, and the settings that they are. */
const NUMBERS = {
  port: "port",
  "max-init-workers": "init-slots",
  "max-run-workers": "run-slots",
  "max-eval-workers": "eval-slots",
} as const;

export const PRORL_FLAGS = {
  host: { type: "string", default: "127.0.0.1" },
  port: { type: "string", default: "8006" },
  "max-init-workers": { type: "string", default: "64" },
  "max-run-workers": { type: "string", default: "64" },
  "max-eval-workers": { type: "string" },
  timeout: { type: "string", default: "300" },
  "allow-skip-eval": { type: "string" },
  "reward-server-ip": { type: "string", multiple: true },
  "use-thread-based-server": { type: "boolean" },
  json: { type: "boolean" },
} as const;

/**
 * The command line of ProRL-Agent-Server, so that scripts that start it can start this instead. What it has no
 * word for is a setting of the environment or of a file, as for `serve`.
 */
export const prorlCommand: Command = {
  name: "prorl",
  summary: "run the service with the command line of ProRL-Agent-Server",
  help: `Usage: rolloutd prorl [flags]

As \`rolloutd serve\`, by the flags of ProRL-Agent-Server's start_server.py:

  --host HOST             address to listen on (127.0.0.1); another one is served without tokens, since
                          ProRL's clients send none: only in a network of your own
  --port N                TCP port (8006)
  --max-init-workers N    jobs in INIT at once (64)
  --max-run-workers N     jobs in RUN at once (64)
  --max-eval-workers N    jobs in EVAL at once (as many as in RUN)
  --timeout S             seconds of work for one job, waiting left out (300)
  --reward-server-ip IP   reward servers on port 8388, for rows that ask for one; may be given several times
  --allow-skip-eval BOOL, --use-thread-based-server
                          taken, and without effect: a patch that is empty is never evaluated

Every setting of \`rolloutd serve\` can be given by its environment variable or in the file of ROLLOUTD_CONFIG.
`,
  async run(argv, context) {
    const { values, positionals } = parseFlags(argv, PRORL_FLAGS);
    // Upstream takes several addresses behind one flag.
    const given = values["reward-server-ip"];
    if (given === undefined) refuseExtra(positionals, 0);
    const rewardServers = given === undefined ? [] : [...given, ...positionals];
    const bad = rewardServers.find(
      (ip) => !/^[A-Za-z0-9:][\w.:-]*$/.test(ip) || !URL.canParse(urlOf(ip)),
    );
    if (bad !== undefined) throw new UsageError(`--reward-server-ip takes addresses, not "${bad}"`);
    const skip = values["allow-skip-eval"];
    if (skip !== undefined && !/^(true|false)$/i.test(skip)) {
      throw new UsageError(`--allow-skip-eval takes true or false, not "${skip}"`);
    }
    const flags = ["--host", values.host, "--prorl-timeout-ms", `${seconds(values.timeout)}`];
    const numbers = {
      ...values,
      "max-eval-workers": values["max-eval-workers"] ?? values["max-run-workers"],
    };
    for (const [name, setting] of Object.entries(NUMBERS)) {
      const text = numbers[name as keyof typeof NUMBERS];
      flags.push(`--${setting}`, `${wholeNumber(`--${name}`, text, name === "port" ? 0 : 1)}`);
    }
    if (values.host !== "127.0.0.1" && values.host !== "localhost") flags.push("--allow-anonymous");
    if (rewardServers.length > 0)
      flags.push("--reward-servers", rewardServers.map(urlOf).join(","));
    if (values.json) flags.push("--json");
    return await serveCommand.run(flags, context);
  },
};

function seconds(text: string): number {
  return wholeNumber("--timeout", text, 1) * 1000;
}

function urlOf(ip: string): string {
  return `http://${ip.includes(":") ? `[${ip}]` : ip}:8388`;
}

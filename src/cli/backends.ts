import { resolve } from "node:path";
import { httpUrl } from "../config/setting.ts";
import { SETTINGS } from "../config/settings.ts";
import type { BackendView, DecisionView } from "../server/parts.ts";
import { clientFor, SERVER_HELP } from "./api-client.ts";
import { type Command, EXIT } from "./command.ts";
import {
  actionOf,
  parseFlags,
  refuseExtra,
  refuseForeign,
  UsageError,
  wholeNumber,
} from "./flags.ts";
import { formatTable } from "./table.ts";

export const backendsCommand: Command = {
  name: "backends",
  summary: "list, add and remove inference servers",
  help: `Usage: rolloutd backends list
       rolloutd backends add URL [--model NAME] [--model-dir DIR] [--api-key-env VARIABLE] [--engine KIND]
       rolloutd backends drain ID [--move]
       rolloutd backends remove ID [--move]
       rolloutd backends decisions [--limit N]

URL is that of an OpenAI-compatible server, with /v1. It is asked for its models before it is added; one
that serves several needs --model. The key is read from the server's own environment.
DIR is the model's Hugging Face folder on the node: with it, rollouts are by token ids, exactly as sampled,
on an engine that takes them.

A few tokens are generated to find out in which way it gives token ids; --json shows what was found, and
why each better way is not taken. --engine names its kind instead: vllm, sglang, prorl, openai (chat, with
ids where they are offered), or text (chat, and nothing is generated).

drain takes no new rollouts to a backend, remove forgets it too. The rollouts that are there end there, or
with --move go on elsewhere from their next turn. decisions shows why each rollout went where it is.

${SERVER_HELP}  --json            JSON instead of a table
`,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, BACKENDS_FLAGS);
    const [name, target] = positionals;
    const action = actionOf(name, BACKENDS_USES.actions);
    refuseForeign(values, action, BACKENDS_USES);
    refuseExtra(positionals, action === "list" || action === "decisions" ? 1 : 2);
    const client = clientFor(values.server);
    const leaving = { trajectories: values.move ? "move" : "finish" };
    const print = (backends: BackendView[]) => {
      process.stdout.write(values.json ? `${JSON.stringify(backends)}\n` : table(backends));
    };
    const say = (what: object) => values.json && process.stdout.write(`${JSON.stringify(what)}\n`);
    switch (action) {
      case "list":
        print((await client.backends()).backends);
        return EXIT.done;
      case "add": {
        if (!target) throw new UsageError("add takes the URL of an inference server");
        if (!httpUrl.safeParse(target).success) {
          throw new UsageError(`add takes an http: or https: URL with /v1, not "${target}"`);
        }
        if (values.engine !== undefined && !ENGINES.safeParse(values.engine).success) {
          throw new UsageError(`--engine is one of ${ENGINES.options.join(", ")}`);
        }
        const { model, "api-key-env": api_key_env, "model-dir": folder, engine } = values;
        const model_dir = folder === undefined ? undefined : resolve(folder);
        print([await client.addBackend({ url: target, model, model_dir, api_key_env, engine })]);
        return EXIT.done;
      }
      case "remove":
        if (!target) throw new UsageError("remove takes the id of a backend");
        say(await client.removeBackend(target, leaving));
        return EXIT.done;
      case "drain":
        if (!target) throw new UsageError("drain takes the id of a backend");
        say(await client.drainBackend(target, leaving));
        return EXIT.done;
      case "decisions": {
        const { limit: given } = values;
        const limit = given === undefined ? given : wholeNumber("--limit", given, 1, 512);
        const { decisions } = await client.decisions({ limit });
        process.stdout.write(values.json ? `${JSON.stringify(decisions)}\n` : explain(decisions));
        return EXIT.done;
      }
    }
  },
};

const ENGINES = SETTINGS.engine.schema;

export const BACKENDS_FLAGS = {
  server: { type: "string" },
  json: { type: "boolean" },
  model: { type: "string" },
  "model-dir": { type: "string" },
  "api-key-env": { type: "string" },
  engine: { type: "string" },
  move: { type: "boolean" },
  limit: { type: "string" },
} as const;

export const BACKENDS_USES = {
  common: ["server", "json"],
  actions: {
    list: [],
    add: ["model", "model-dir", "api-key-env", "engine"],
    drain: ["move"],
    remove: ["move"],
    decisions: ["limit"],
  },
} as const;

function table(backends: BackendView[]): string {
  if (backends.length === 0) return "no backends\n";
  const rows = backends.map(({ id, url, model, in_flight, turns, state, engine }) => {
    const kind = engine ? [engine.kind, engine.version ?? ""].join(" ").trim() : "not probed";
    const context = `${engine?.max_model_len ?? ""}`;
    return [id, url, model, kind, tokensFrom(engine), context, state, `${in_flight}`, `${turns}`];
  });
  const header = [
    "id",
    "url",
    "model",
    "engine",
    "token ids",
    "context",
    "state",
    "rollouts",
    "calls",
  ];
  return formatTable(header, rows);
}

function explain(decisions: DecisionView[]): string {
  if (decisions.length === 0) return "no decisions\n";
  const rows = decisions.map(({ at_ms, job_id, from, backend_id, cause, reason, scores }) => {
    const moved = from === null || from === backend_id ? backend_id : `${from} → ${backend_id}`;
    const why = cause === null ? reason : `${cause}; ${reason}`;
    const shown = scores.map(({ id, score }) => `${id} ${score ?? "-"}`).join(", ");
    return [new Date(at_ms).toISOString(), job_id, moved, why, shown];
  });
  return formatTable(["at", "rollout", "backend", "why", "work ahead"], rows);
}

function tokensFrom(engine: BackendView["engine"]): string {
  if (!engine || engine.rung === "chat") return "none";
  const without = engine.logprobs ? "" : ", no log-probabilities";
  return `${engine.rung}${without}`;
}

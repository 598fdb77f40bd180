import type { RolloutView } from "../protocol/view.ts";
import { type ApiClient, clientFor, SERVER_HELP } from "./api-client.ts";
import { type Command, EXIT } from "./command.ts";
import {
  actionOf,
  type Idle,
  parseFlags,
  refuseExtra,
  refuseForeign,
  refuseIdle,
  UsageError,
  wholeNumber,
} from "./flags.ts";
import { inTurn } from "./in-turn.ts";
import { formatTable, seconds } from "./table.ts";
import { watchService } from "./watch-service.ts";

const WATCH_WAIT_MS = 30_000;
/** Rescores that are waited for at once. */
const AT_ONCE = 32;

export const jobsCommand: Command = {
  name: "jobs",
  summary: "list, get, watch, cancel and rescore rollouts",
  help: `Usage: rolloutd jobs list [--state STATE[,STATE]] [--label NAME:VALUE] [--kind KIND] [--limit N] [--after CURSOR]
       rolloutd jobs get ID [--trajectory]
       rolloutd jobs watch [ID]
       rolloutd jobs cancel ID... | --label NAME:VALUE [--state STATE] [--kind KIND]
       rolloutd jobs rescore ID...

  list    in the order of submission; states are pending, active, succeeded, failed, cancelled
  get     one rollout with its timeline, or with --trajectory what happened in it, as JSON
  watch   waits for its end; exit code 1 unless it succeeded. Without an id the service as it works, until
          Ctrl-C: stages, backends, mean reward, failures; a line at each change where that is no terminal
  cancel  asks for the end and waits for it; with --label of all that have the label, without waiting
  rescore EVAL again from what RUN left, without the model, as a rollout of its own; the old verdict stays

${SERVER_HELP}  --json            JSON instead of a table
`,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, JOBS_FLAGS);
    const [name, ...ids] = positionals;
    const action = actionOf(name, JOBS_USES.actions);
    refuseForeign(values, action, JOBS_USES);
    refuseIdle(values, idleFlags(values, action, ids));
    const { state, label, kind } = values;
    const client = clientFor(values.server);
    const print = (views: RolloutView[]) => {
      process.stdout.write(values.json ? `${JSON.stringify(views, null, 2)}\n` : table(views));
    };
    switch (action) {
      case "list": {
        refuseExtra(ids, 0);
        const limit = wholeNumber("--limit", values.limit ?? "50", 1);
        const after = wholeNumber("--after", values.after ?? "0");
        const page = await client.list({ limit, after, state, label, kind });
        print(page.rollouts);
        if (page.rollouts.length === limit) {
          process.stderr.write(`more: rolloutd jobs list --after ${page.next}\n`);
        }
        return EXIT.done;
      }
      case "get": {
        const id = single(ids);
        const found = values.trajectory ? await client.trajectory(id) : await describe(client, id);
        console.log(JSON.stringify(found, null, 2));
        return EXIT.done;
      }
      case "watch": {
        if (ids.length === 0) {
          return await watchService(client);
        }
        const view = await watch(client, single(ids));
        print([view]);
        return view.state === "succeeded" ? EXIT.done : EXIT.failed;
      }
      case "cancel": {
        if (label !== undefined) {
          refuseExtra(ids, 0);
          const { cancelled } = await client.cancelLabelled({ label, state, kind });
          process.stdout.write(
            values.json ? `${JSON.stringify({ cancelled })}\n` : `${cancelled} cancelled\n`,
          );
          return EXIT.done;
        }
        if (ids.length === 0) throw new UsageError("cancel takes the ids of rollouts, or --label");
        const wait_ms = WATCH_WAIT_MS;
        print(await Promise.all(ids.map((id) => client.cancel(id, { wait_ms }))));
        return EXIT.done;
      }
      case "rescore": {
        if (ids.length === 0) throw new UsageError("rescore takes the ids of rollouts");
        const views = await inTurn(ids, AT_ONCE, (id) => rescore(client, id));
        print(views);
        return views.every(({ state }) => state === "succeeded") ? EXIT.done : EXIT.failed;
      }
    }
  },
};

export const JOBS_FLAGS = {
  server: { type: "string" },
  json: { type: "boolean" },
  state: { type: "string" },
  label: { type: "string" },
  kind: { type: "string" },
  limit: { type: "string" },
  after: { type: "string" },
  trajectory: { type: "boolean" },
} as const;

export const JOBS_USES = {
  common: ["server", "json"],
  actions: {
    list: ["state", "label", "kind", "limit", "after"],
    get: ["trajectory"],
    watch: [],
    cancel: ["label", "state", "kind"],
    rescore: [],
  },
} as const;

type Values = ReturnType<typeof parseFlags<typeof JOBS_FLAGS>>["values"];

function idleFlags(values: Values, action: string, ids: string[]): Idle[] {
  return [
    {
      flags: ["state", "kind"],
      when: action === "cancel" && values.label === undefined,
      why: "goes with --label NAME:VALUE",
    },
    {
      flags: ["label"],
      when: action === "cancel" && ids.length > 0,
      why: "cancels all that have the label: leave the ids out, or --label",
    },
    {
      flags: ["json"],
      when: action === "watch" && ids.length === 0,
      why: "needs an id: a service is watched as text",
    },
  ];
}

function single(ids: string[]): string {
  const [id] = ids;
  if (id === undefined || ids.length > 1) throw new UsageError("this action takes one id");
  return id;
}

async function describe(client: ApiClient, id: string) {
  const [view, { spans }] = await Promise.all([client.rollout(id), client.timeline(id)]);
  return { ...view, timeline: spans };
}

async function watch(client: ApiClient, id: string): Promise<RolloutView> {
  for (;;) {
    const view = await client.rollout(id, { wait_ms: WATCH_WAIT_MS });
    if (view.finished_at !== null) return view;
    process.stderr.write(`${view.stage}/${view.state}, attempt ${view.attempt}\n`);
  }
}

async function rescore(client: ApiClient, id: string): Promise<RolloutView> {
  const view = await client.rescore(id, { wait_ms: WATCH_WAIT_MS });
  return view.finished_at === null ? await watch(client, view.id) : view;
}

function table(views: RolloutView[]): string {
  if (views.length === 0) return "no rollouts\n";
  const rows = views.map((view) => [
    view.id,
    view.task_kind,
    view.stage,
    view.ending ? `${view.state}, ending` : view.state,
    view.reward === null ? "-" : String(view.reward),
    view.verdict?.rule ?? view.error?.code ?? "",
    ...(["init", "run", "eval"] as const).map((stage) => seconds(view.timings[stage].active_ms)),
  ]);
  const header = ["id", "task", "stage", "state", "reward", "why", "init s", "run s", "eval s"];
  return formatTable(header, rows);
}

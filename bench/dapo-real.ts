import type { GroupView } from "../src/protocol/group-view.ts";
import {
  mathRow,
  type Running,
  run,
  type Service,
  serve,
  simulate,
} from "../test/support/binary.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { INFORMATIVE_SHARE, SAMPLES, sampleOf } from "./dapo-workload.ts";
import { print, round } from "./line.ts";

/** As in virtual time, made small enough to be played: lengths are a fortieth, and a token takes 4 ms. */
const SCALE = 40;
const MS_PER_TOKEN = 4;
const BACKENDS = 2;
const WIDTH = 16;
const RUN_SLOTS = Math.floor(BACKENDS * WIDTH * 1.25);
const GOAL = 8;
const STEPS = 3;
const WARM_UP = 1;
const ROWS = 400;
const SEED = 1;

type Step = { seconds: number; generated: number; used: number };
type Cluster = { service: Service; engines: Running[]; rows: object[] };
/** Runs a step; returns the groups that were decided in it, informative or not. */
type Play = (cluster: Cluster, step: number) => Promise<GroupView[]>;

/** One case against real processes: the service over its socket, simulated engines behind it. */
export async function dapoReal(): Promise<void> {
  const ours = await measure(series());
  const rivals = { "a batch that waits for all": waitForAll(), "upstream's client": upstream() };
  const targets: Record<string, number> = {
    "a batch that waits for all": 1.23,
    "upstream's client": 1.1,
  };
  report("ours", ours);
  for (const [rival, play] of Object.entries(rivals)) {
    const theirs = await measure(play);
    report(rival, theirs);
    const ratio = round(secondsOf(theirs) / secondsOf(ours));
    const target = targets[rival] ?? 1;
    print({
      ...{ bench: "dapo-real", case: `time of ${rival} over ours`, n: STEPS, unit: "ratio" },
      ...{ p50: ratio, p99: ratio, target: `at least ${target}`, met: ratio >= target },
    });
  }
}

async function measure(play: Play): Promise<Step[]> {
  using dir = tempDir();
  const engines: Running[] = [];
  const flags: string[] = [];
  const timing = ["--ms-per-token", `${MS_PER_TOKEN}`, "--max-batch", `${WIDTH}`];
  await using stack = new AsyncDisposableStack();
  for (let at = 0; at < BACKENDS; at++) {
    using folder = tempDir();
    const engine = stack.use(await simulate(folder.path, scripts(), timing));
    engines.push(engine);
  }
  flags.push("--run-slots", `${RUN_SLOTS}`, "--backend", engines[0]?.line ?? "");
  const service = stack.use(await serve(dir.file("data"), flags));
  for (const { line } of engines.slice(1)) {
    await run(["backends", "add", line, "--server", service.socket]);
  }
  const cluster = { service, engines, rows: rows() };
  const steps: Step[] = [];
  for (let step = 0; step < WARM_UP + STEPS; step++) {
    const before = await generatedBy(engines);
    const startMs = performance.now();
    const decided = await play(cluster, step);
    const seconds = (performance.now() - startMs) / 1000;
    const generated = (await generatedBy(engines)) - before;
    if (step >= WARM_UP) steps.push({ seconds, generated, used: tokensIn(decided) });
  }
  return steps;
}

/** The service's own way, as a trainer has it that names a series and nothing else. */
function series(): Play {
  const seen = new Set<string>();
  return async ({ service, rows }, step) => {
    const plan = { num_samples: SAMPLES, goal: { groups: GOAL }, sampling: { seed: 0 } };
    const instances = step === 0 ? rows : [];
    const id = `step-${step}`;
    await call(service, "POST", "/v1/batches", { id, ...plan, series: "bench", instances });
    await call(service, "GET", `/v1/batches/${id}?wait_ms=120000`);
    const { groups } = await call(service, "GET", `/v1/batches/${id}/groups?limit=100`);
    const { groups: rest } = await call(service, "GET", "/v1/groups?state=complete&limit=1000");
    const dull = rest.filter((group: GroupView) => group.informative === false);
    const fresh = dull.filter(({ id: known }: GroupView) => !seen.has(known));
    for (const { id: known } of fresh) seen.add(known);
    return [...groups, ...fresh];
  };
}

function waitForAll(): Play {
  let row = 0;
  return async (cluster) => {
    const decided: GroupView[] = [];
    for (let missing = GOAL; missing > 0; ) {
      const size = Math.ceil(missing / INFORMATIVE_SHARE);
      const all = Array.from({ length: size }, () => group(cluster, row++, 0));
      decided.push(...(await Promise.all(all)));
      missing = GOAL - decided.filter(({ informative }) => informative).length;
    }
    return decided;
  };
}

/** Fills the slots, drops groups that teach nothing, and at the goal cancels the others; their rows come again. */
function upstream(): Play {
  let fresh = 0;
  let again: number[] = [];
  let tries = 0;
  return async (cluster) => {
    const decided: GroupView[] = [];
    const open = new Map<number, Promise<void>>();
    const attempt = tries++;
    let informative = 0;
    const begin = () => {
      const row = again.shift() ?? fresh++;
      const over = group(cluster, row, attempt).then((view) => {
        if (view.state === "cancelled") return;
        open.delete(row);
        decided.push(view);
        if (view.informative) informative++;
      });
      open.set(row, over);
    };
    while (informative < GOAL) {
      while (open.size * SAMPLES < RUN_SLOTS) begin();
      await Promise.race(open.values());
    }
    again = [...open.keys(), ...again];
    for (const row of again)
      if (open.has(row)) await call(cluster.service, "DELETE", `/v1/groups/r${row}-${attempt}`);
    await Promise.all(open.values());
    return decided;
  };
}

function group({ service, rows }: Cluster, row: number, attempt: number): Promise<GroupView> {
  const body = { num_samples: SAMPLES, instance: rows[row % ROWS], sampling: { seed: 0 } };
  return call(service, "POST", "/v1/groups?wait_ms=120000", { id: `r${row}-${attempt}`, ...body });
}

async function call(service: Service, method: string, path: string, body?: unknown) {
  const init =
    body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`http://localhost${path}`, {
    unix: service.socket,
    method,
    ...init,
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  // biome-ignore lint/suspicious/noExplicitAny: each caller knows what it asked for.
  return (await response.json()) as any;
}

function rows(): object[] {
  return Array.from({ length: ROWS }, (_, row) => ({
    ...mathRow(`row ${row}: what is 2 + 2?`, "4"),
    ...{ data_source: "reasoning", verifier: "math", instance_id: `row-${row}` },
  }));
}

/** Seeds count the samples, so that the same instance gives the same rollouts to everybody. */
function scripts() {
  return Array.from({ length: ROWS }, (_, row) => ({
    match: `row ${row}:`,
    variants: Array.from({ length: SAMPLES }, (_, sample) => {
      const { tokens, reward } = sampleOf(SEED, row, sample);
      const answer = ` \\boxed{${reward === 1 ? 4 : 5}}`;
      return [{ content: "x".repeat(Math.max(1, tokens / SCALE - answer.length)) + answer }];
    }),
  }));
}

async function generatedBy(engines: Running[]): Promise<number> {
  let sum = 0;
  for (const { line } of engines) {
    const text = await (await fetch(new URL("/metrics", line))).text();
    sum += Number(text.match(/^vllm:generation_tokens_total\S* (\S+)$/m)?.[1]);
  }
  return sum;
}

function tokensIn(groups: GroupView[]): number {
  const members = groups.flatMap((group) => group.members);
  return members.reduce((sum, { tokens }) => sum + (tokens ?? 0), 0);
}

const secondsOf = (steps: Step[]) => steps.reduce((sum, { seconds }) => sum + seconds, 0);

function report(name: string, steps: Step[]): void {
  const generated = steps.reduce((sum, step) => sum + step.generated, 0);
  const used = steps.reduce((sum, step) => sum + step.used, 0);
  const capacity = (secondsOf(steps) * 1000 * BACKENDS * WIDTH) / MS_PER_TOKEN;
  const line = (what: string, value: number, unit: string) =>
    print({
      ...{ bench: "dapo-real", case: `${name}: ${what}`, n: STEPS, unit },
      ...{ p50: round(value), p99: round(value) },
    });
  line("seconds per step", secondsOf(steps) / STEPS, "s");
  line("engine use", generated / capacity, "share");
  line("tokens generated for none of the groups that were decided", 1 - used / generated, "share");
}

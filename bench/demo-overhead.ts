import { environment, turn } from "../test/support/binary.ts";
import { percentile, print, round } from "./line.ts";
import { startRollouts, type TokenSource } from "./rollouts.ts";

const ROLLOUTS = 8;
const TURNS = 40;
const TARGET_MS = 5;
const TOKENS: Record<TokenSource, string> = {
  none: "in text mode",
  folder: "by token ids of a model folder",
  engine: "by token ids over the engine's routes, each of them a call",
};

/**
 * The engine answers at once and the cells compute nothing, so what is left of a turn is the service: the
 * call, the tool's round trip into the sandbox, and the record.
 */
export async function demoOverhead(): Promise<void> {
  const floor = bareStarts();
  for (const tokens of ["none", "folder", "engine"] as const) await playOut(tokens, floor);
}

async function playOut(tokens: TokenSource, floor: number[]): Promise<void> {
  const turns = Array.from({ length: TURNS }, (_, index) =>
    turn("execute_ipython_cell", { code: `${index}` }),
  );
  turns.push(turn("finish", { message: "\\boxed{1}" }));
  await using rollouts = await startRollouts(turns, tokens);
  const perTurn: number[] = [];
  const perRollout: number[] = [];
  for (let index = 0; index < ROLLOUTS; index++) {
    const tools = ["execute_ipython_cell", "finish"];
    const view = await rollouts.submit(`d${index}`, tools, 60_000);
    if (view.reward !== 1) throw new Error(`a rollout failed: ${JSON.stringify(view)}`);
    const { turns: recorded } = await rollouts.trajectory(view.id);
    const first = recorded[0]?.started_ms ?? 0;
    const last = recorded.at(-1)?.started_ms ?? 0;
    perTurn.push((last - first) / (recorded.length - 1));
    const { init, run, eval: evaluation } = view.timings;
    const active = init.active_ms + run.active_ms + evaluation.active_ms;
    perRollout.push(active - (last - first));
  }
  const p50 = percentile(perTurn, 0.5);
  print({
    bench: "demo-overhead",
    case: `service and simulator per turn, mean of a rollout, ${TOKENS[tokens]}`,
    n: ROLLOUTS * TURNS,
    p50,
    p99: percentile(perTurn, 0.99),
    unit: "ms",
    ...(tokens === "engine" ? {} : { target: `under ${TARGET_MS} ms`, met: p50 < TARGET_MS }),
  });
  print({
    bench: "demo-overhead",
    case: `service time per rollout without its turns: sandbox, Python with numpy and sympy, verdict, end; ${TOKENS[tokens]}`,
    n: ROLLOUTS,
    p50: percentile(perRollout, 0.5),
    p99: percentile(perRollout, 0.99),
    unit: "ms",
    against: "apptainer exec IMAGE python3 -c 'import IPython, numpy, sympy'",
    ratio: round(percentile(perRollout, 0.5) / percentile(floor, 0.5)),
  });
}

/** What the same preparation costs by hand. */
function bareStarts(): number[] {
  const program = [environment("ROLLOUTD_APPTAINER"), "-q", "exec"];
  const userns = process.getuid?.() === 0 ? ["--userns"] : [];
  const flags = ["--containall", "--no-home", "--writable-tmpfs"];
  const python = ["python3", "-c", "import IPython, numpy, sympy"];
  return Array.from({ length: ROLLOUTS }, () => {
    const startMs = performance.now();
    const command = [...program, ...userns, ...flags, environment("ROLLOUTD_IMAGE"), ...python];
    const { exitCode, stderr } = Bun.spawnSync(command, {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
    });
    if (exitCode !== 0) throw new Error(`the floor failed: ${stderr}`);
    return performance.now() - startMs;
  });
}

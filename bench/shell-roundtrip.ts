import { availableParallelism } from "node:os";
import { setup } from "../test/sandbox/setup.ts";
import { percentile, print, round } from "./line.ts";
import { pythonWith, Rival, tmux } from "./rival.ts";

const ROUNDS = 20;
const ECHOES = 25;
/** Of tmux, which takes more than half a second for each. */
const SLOW_ECHOES = 1;
const BUSY = 64;
/** How much of the machine the busy ones take. */
const LOAD = 0.5;
const RUN = { timeoutMs: 60_000, maxOutputBytes: 100_000 };

type Side = { name: string; round(echoes: number): Promise<number[]>; times: number[] };

/**
 * `echo` in the shell of a sandbox, from the request to the answer with exit code, folder and interpreter. The rivals
 * have a bash on the host itself, without a sandbox, and answer with exit code and folder. Sides take turns, so that
 * all meet the same machine.
 */
export async function shellRoundtrip(): Promise<void> {
  await using bundle = await setup("bubblewrap");
  const shell = await (await bundle.open()).shell();
  const python = await pythonWith("ptyprocess==0.7.0", "pexpect==4.9.0");
  await using pty = await Rival.start("ptyprocess", [python, "shells.py", "pty"]);
  await using pexpect = await Rival.start("pexpect", [python, "shells.py", "pexpect"]);
  await using panes = await Rival.start("tmux", [python, "shells.py", "tmux", await tmux()]);
  const ours = async (echoes: number) => {
    const times: number[] = [];
    for (let n = 0; n < echoes; n++) {
      const startMs = performance.now();
      const { output } = await shell.run("echo hello", RUN);
      times.push(performance.now() - startMs);
      if (output !== "hello\n") throw new Error(`bench: echo answered ${output}`);
    }
    return times;
  };
  const rivals = [
    { name: "raw PTY, blocking reader", rival: pty },
    { name: "pexpect", rival: pexpect },
    { name: "tmux, capture-pane each 0.5 s", rival: panes },
  ].flatMap(({ name, rival }) => (rival ? [{ name, round: rival.round.bind(rival) }] : []));
  await ours(300);
  await measure("alone", ours, rivals);
  const busy = await makeBusy(bundle);
  await measure(`${BUSY} sandboxes busy`, ours, rivals);
  busy.stop();
}

async function measure(
  load: string,
  ours: Side["round"],
  rivals: Omit<Side, "times">[],
): Promise<void> {
  const own: Side = { name: "ours", round: ours, times: [] };
  const others = rivals.map((rival): Side => ({ ...rival, times: [] }));
  for (let turn = 0; turn < ROUNDS; turn++) {
    for (const side of [own, ...others]) {
      const isSlow = side.name.startsWith("tmux");
      side.times.push(...(await side.round(isSlow ? SLOW_ECHOES : ECHOES)));
    }
  }
  for (const rival of others) report(load, own.times, rival);
  if (others.length === 0) report(load, own.times, null);
}

function report(load: string, times: number[], rival: Side | null): void {
  const p50 = percentile(times, 0.5);
  const theirs = rival && percentile(rival.times, 0.5);
  const targets: Record<string, { target: string; met: boolean }> = {
    raw: { target: "p50 at most 1.5 of the raw PTY", met: p50 <= 1.5 * (theirs ?? 0) },
    tmux: { target: "p50 at most 1/20 of tmux", met: 20 * p50 <= (theirs ?? 0) },
  };
  print({
    bench: "shell-roundtrip",
    case: `echo in a bubblewrap sandbox, ${load}`,
    n: times.length,
    p50,
    p99: percentile(times, 0.99),
    unit: "ms",
    ...(rival && {
      against: `${rival.name}: ${theirs} ms, p99 ${percentile(rival.times, 0.99)} ms`,
      ratio: round(p50 / (theirs ?? Number.NaN)),
      ...targets[rival.name.split(/[ ,]/)[0] ?? ""],
    }),
  });
}

/** As many sandboxes, each of which computes a little and rests, so that together they take a share of the machine. */
async function makeBusy(bundle: Awaited<ReturnType<typeof setup>>): Promise<{ stop(): void }> {
  const abort = new AbortController();
  const work = "for ((i = 0; i < 20000; i++)); do :; done";
  const probe = await bundle.open();
  const { durationMs } = await (await probe.shell()).run(work, RUN);
  const restSeconds = (durationMs * BUSY) / (LOAD * availableParallelism()) / 1000;
  const sandboxes = await Promise.all(Array.from({ length: BUSY }, () => bundle.open()));
  for (const sandbox of sandboxes) {
    const delay = Math.random() * restSeconds;
    const script = `sleep ${delay}; while :; do ${work}; sleep ${restSeconds}; done`;
    const options = { ...RUN, timeoutMs: 600_000, signal: abort.signal };
    (await sandbox.shell()).run(script, options).catch(() => {});
  }
  return { stop: () => abort.abort(new Error("the bench is over")) };
}

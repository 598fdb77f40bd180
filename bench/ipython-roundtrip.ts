import { setup } from "../test/sandbox/setup.ts";
import { percentile, print, round } from "./line.ts";
import { pythonWith, Rival } from "./rival.ts";

const ROUNDS = 20;
const CELLS = 20;
const RUN = { timeoutMs: 60_000, maxOutputBytes: 100_000 };

/**
 * A cell that prints, from the request to the answer, in a sandbox's IPython and in a Jupyter kernel on the host, which
 * a client in Python talks to over TCP. The sides take turns.
 */
export async function ipythonRoundtrip(): Promise<void> {
  await using bundle = await setup("bubblewrap");
  const session = await (await bundle.open()).python({ startTimeoutMs: 60_000 });
  const python = await pythonWith("jupyter_client==8.6.3", "ipykernel==6.29.5");
  await using kernel = await Rival.start("jupyter_client", [python, "kernel.py"]);
  const ours: number[] = [];
  const theirs: number[] = [];
  const cells = async () => {
    for (let n = 0; n < CELLS; n++) {
      const startMs = performance.now();
      const { output } = await session.run("print(6 * 7)", RUN);
      ours.push(performance.now() - startMs);
      if (output !== "42\n") throw new Error(`bench: the cell answered ${output}`);
    }
  };
  await cells();
  ours.length = 0;
  for (let turn = 0; turn < ROUNDS; turn++) {
    await cells();
    if (kernel) theirs.push(...(await kernel.round(CELLS)));
  }
  const p50 = percentile(ours, 0.5);
  const rivalP50 = percentile(theirs, 0.5);
  print({
    bench: "ipython-roundtrip",
    case: "print(6 * 7) in a bubblewrap sandbox",
    n: ours.length,
    p50,
    p99: percentile(ours, 0.99),
    unit: "ms",
    ...(kernel && {
      against: `Jupyter kernel over TCP: ${rivalP50} ms, p99 ${percentile(theirs, 0.99)} ms`,
      ratio: round(p50 / rivalP50),
      target: "p50 at most 1/10 of the kernel's",
      met: 10 * p50 <= rivalP50,
    }),
  });
}

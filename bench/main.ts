import { api } from "./api.ts";
import { balance } from "./balance/balance.ts";
import { cancelLatency } from "./cancel-latency.ts";
import { dapo } from "./dapo.ts";
import { dapoReal } from "./dapo-real.ts";
import { demoOverhead } from "./demo-overhead.ts";
import { evalOverhead } from "./eval-overhead.ts";
import { groupEnd } from "./group-end.ts";
import { ipythonRoundtrip } from "./ipython-roundtrip.ts";
import { jobOverhead } from "./job-overhead.ts";
import { llmTurn } from "./llm-turn.ts";
import { million } from "./million.ts";
import { outputFlood } from "./output-flood.ts";
import { sandboxDensity } from "./sandbox-density.ts";
import { sandboxSoak } from "./sandbox-soak.ts";
import { sandboxStart } from "./sandbox-start.ts";
import { sandboxTeardown } from "./sandbox-teardown.ts";
import { shellRoundtrip } from "./shell-roundtrip.ts";
import { tokens } from "./tokens.ts";
import { trajectoryPayload } from "./trajectory-payload.ts";
import { transformers } from "./transformers.ts";
import { unixVsTcp } from "./unix-vs-tcp.ts";
import { verifyMath } from "./verify-math.ts";

/** Each answers one question; `bun run bench NAME...` prints one JSON line per case. */
const BENCHES: Record<string, { question: string; run(): Promise<void> }> = {
  "job-overhead": {
    question: "what does the service cost per job, durable, over the Unix socket and HTTP?",
    run: jobOverhead,
  },
  balance: {
    question: "how long does a batch of skewed rollouts take over 2 to 16 backends, by policy?",
    run: balance,
  },
  api: {
    question:
      "what do submits, gets and waiting clients cost, durable, beside FastAPI that keeps nothing?",
    run: api,
  },
  million: {
    question: "is a service with a million finished rollouts as quick as an empty one?",
    run: million,
  },
  "cancel-latency": {
    question: "how long from DELETE to the freed slot of a job that sits in a shell command?",
    run: cancelLatency,
  },
  "demo-overhead": {
    question: "what is left of a rollout's time when model and commands are taken out?",
    run: demoOverhead,
  },
  "sandbox-start": {
    question: "how long from the request for a sandbox to the end of its first command?",
    run: sandboxStart,
  },
  "shell-roundtrip": {
    question:
      "how long does an echo take in a sandbox's shell, against a raw PTY, pexpect and tmux?",
    run: shellRoundtrip,
  },
  "ipython-roundtrip": {
    question:
      "how long does a cell take in a sandbox's IPython, against a Jupyter kernel over TCP?",
    run: ipythonRoundtrip,
  },
  "unix-vs-tcp": {
    question: "what does an exchange over a Unix socket save, against loopback TCP?",
    run: unixVsTcp,
  },
  "output-flood": {
    question:
      "what does a command that prints a gigabyte cost the service and the other sandboxes?",
    run: outputFlood,
  },
  "group-end": {
    question:
      "how long until 64 rollouts of a group that nobody needs any more have freed their slots?",
    run: groupEnd,
  },
  dapo: {
    question:
      "how long to N informative groups, beside waiting for all, static batches and upstream's client?",
    run: dapo,
  },
  "dapo-real": {
    question: "the same with a service and engines in processes of their own: does it hold?",
    run: dapoReal,
  },
  "sandbox-teardown": {
    question: "how long from the end of a job to the proof that nothing of its sandbox is left?",
    run: sandboxTeardown,
  },
  "sandbox-soak": {
    question: "does anything of 500 sandboxes stay, after they were made, used and ended?",
    run: sandboxSoak,
  },
  "sandbox-density": {
    question: "how much memory does an idle sandbox with an open shell take?",
    run: sandboxDensity,
  },
  tokens: {
    question: "what does a turn cost in tokenising and rendering, and does it grow with the turns?",
    run: tokens,
  },
  transformers: {
    question: "do prompts and ids agree with Python's transformers, where it can be had?",
    run: transformers,
  },
  "trajectory-payload": {
    question: "what does a trajectory of 50 turns and 32k tokens weigh, and cost to write?",
    run: trajectoryPayload,
  },
  "eval-overhead": {
    question: "what does EVAL of a software engineering row add to its test command?",
    run: evalOverhead,
  },
  "verify-math": {
    question:
      "what does a verdict on a boxed answer cost, how often is it right, beside math_verify, and do questions answer themselves?",
    run: verifyMath,
  },
  "llm-turn": {
    question: "what does the service add to a call of a model, with 1, 64 and 1,024 in flight?",
    run: llmTurn,
  },
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !(name in BENCHES));
if (names.length === 0 || unknown.length > 0) {
  for (const name of unknown) console.error(`bench: there is no "${name}"`);
  for (const [name, { question }] of Object.entries(BENCHES)) console.log(`${name}: ${question}`);
  process.exit(unknown.length > 0 ? 2 : 0);
}
for (const name of names) await BENCHES[name]?.run();
process.exit(0);

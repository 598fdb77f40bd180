import { rename } from "node:fs/promises";
import { basename } from "node:path";
import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { parseFault } from "../simulator/faults.ts";
import { type Policy, parsePolicy } from "../simulator/policy.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../simulator/simulator.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra, UsageError } from "./flags.ts";

const HELP = `Usage: rolloutd simulate (--policy FILE.jsonl | --echo) [options]

Serves a simulated inference engine on 127.0.0.1 until it gets SIGINT or SIGTERM:
GET /health, GET /v1/models and POST /v1/chat/completions, as vLLM does. It prints its address
as one line.

  --policy FILE       scripted answers, one JSON object per line (see below)
  --echo              answer with the last user message
  --port N            port to listen on; 0, the default, takes a free one
  --port-file FILE    write the port there once it listens
  --model NAME        the model that it serves ("simulated")
  --max-model-len N   context length in tokens (32768); four bytes are one token
  --latency-ms N      duration of a call (0)
  --jitter-ms N       up to so much more (0)
  --ms-per-token N    and so much per token of the answer (0)
  --seed N            of jitter and faults (0)
  --fault SPEC        what goes wrong on purpose; may be given several times
  --json              print {"url","port","model"} instead of the address

Policy: {"match": "text in the first user message", "variants": [[turn, ...], ...]}
The variant is the request's seed modulo their number, the turn the number of assistant messages.
Turn: {"content": "...", "tool_calls": [{"name": "...", "arguments": {...}}], "delay_ms": N}, and
"finish_reason" if it is an unusual one. Its strings may hold {{observation}}, the last tool
message, and {{observation:REGEX}}, the first group in it.

Fault: status=NNN, reset, stall, garbage or truncate, then any of rate=0.1 (share of the
requests), turn=N, limit=N (at most so many) and, for a status, retry_after=SECONDS.
Example: --fault "status=503,rate=0.1"
`;

const OPTIONS = {
  policy: { type: "string" },
  echo: { type: "boolean" },
  port: { type: "string" },
  "port-file": { type: "string" },
  model: { type: "string" },
  "max-model-len": { type: "string" },
  "latency-ms": { type: "string" },
  "jitter-ms": { type: "string" },
  "ms-per-token": { type: "string" },
  seed: { type: "string" },
  fault: { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

const whole = z.coerce.number().int();
const positiveMs = z.coerce.number().min(0);

const valuesSchema = z.object({
  port: whole.min(0).max(65_535).default(0),
  model: z.string().min(1).default("simulated"),
  "max-model-len": whole.min(1).default(32_768),
  "latency-ms": positiveMs.default(0),
  "jitter-ms": positiveMs.default(0),
  "ms-per-token": positiveMs.default(0),
  seed: whole.default(0),
  fault: z.array(z.string()).default([]),
});

export const simulateCommand: Command = {
  name: "simulate",
  summary: "the simulated inference engine: scripted answers in a real wire format",
  help: HELP,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, OPTIONS);
    refuseExtra(positionals, 0);
    return serve(await readOptions(values), values);
  },
};

type Values = ReturnType<typeof parseFlags<typeof OPTIONS>>["values"];

/** @throws UsageError */
async function readOptions(values: Values): Promise<SimulatorOptions> {
  const parsed = valuesSchema.safeParse(values);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new UsageError(`--${String(issue?.path[0])}: ${issue?.message}`);
  }
  const given = parsed.data;
  return {
    port: given.port,
    model: given.model,
    maxModelLen: given["max-model-len"],
    policy: await readPolicy(values),
    latencyMs: given["latency-ms"],
    jitterMs: given["jitter-ms"],
    msPerToken: given["ms-per-token"],
    seed: given.seed,
    faults: given.fault.map((text) => asUsage(() => parseFault(text))),
  };
}

async function readPolicy({ policy, echo }: Values): Promise<Policy> {
  if ((policy === undefined) === !echo) throw new UsageError("give --policy FILE or --echo");
  if (policy === undefined) return { kind: "echo" };
  let text: string;
  try {
    text = await Bun.file(policy).text();
  } catch (error) {
    throw new UsageError(`--policy: ${(error as Error).message}`);
  }
  return asUsage(() => parsePolicy(text, basename(policy)));
}

/** What the simulator finds wrong with its options is wrong on the command line. */
function asUsage<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof ServiceError) throw new UsageError(error.message);
    throw error;
  }
}

async function serve(options: SimulatorOptions, values: Values): Promise<number> {
  let simulator: Simulator;
  try {
    simulator = await startSimulator(options);
  } catch (error) {
    process.stderr.write(`rolloutd simulate: ${(error as Error).message}\n`);
    return EXIT.failed;
  }
  await using running = simulator;
  const { url, port } = running;
  const stopped = untilSignal();
  const portFile = values["port-file"];
  if (portFile !== undefined) {
    // Whoever waits for the file never reads half of it.
    await Bun.write(`${portFile}.part`, `${port}\n`);
    await rename(`${portFile}.part`, portFile);
  }
  const line = values.json ? JSON.stringify({ url, port, model: options.model }) : url;
  process.stdout.write(`${line}\n`);
  await stopped;
  return EXIT.done;
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      process.off("SIGINT", done);
      process.off("SIGTERM", done);
      resolve();
    };
    process.on("SIGINT", done);
    process.on("SIGTERM", done);
  });
}

import { rename } from "node:fs/promises";
import { writeModelFolder } from "../simulator/model-folder.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../simulator/simulator.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra } from "./flags.ts";
import { SIMULATE_OPTIONS, type SimulateValues, simulatorOptions } from "./simulate-options.ts";

const HELP = `Usage: rolloutd simulate (--policy FILE.jsonl | --policy random | --echo) [options]

Serves a simulated inference engine on 127.0.0.1 until it gets SIGINT or SIGTERM, in the wire formats
of vLLM, SGLang, ProRL and OpenAI's chat, by token ids and by text. It prints its address as one line.

  --policy FILE       scripted answers, one JSON object per line (see below)
                      or recorded rollouts, as \`rolloutd run\` writes them: replayed
  --policy random     rollouts of random length, always the same ones for the same seeds
  --turns M[,S]       how many turns: median, and sigma of the lognormal (8,0.5)
  --tokens M[,S]      tokens of a turn, likewise (200,0.5)
  --call JSON         the tool call of every turn but the last
  --echo              answer with the last user message
  --wire KIND         whose routes: all (default), vllm, vllm-old, sglang, sglang-old, prorl or openai
  --port N            port to listen on; 0, the default, takes a free one
  --port-file FILE    write the port there once it listens
  --model-dir DIR     write the model's tokenizer and chat template there, as a Hugging Face folder
  --tokenizer DIR     a real model's tokenizer instead of bytes; it must know ChatML (Qwen's do)
  --model NAME        the model that it serves ("simulated")
  --max-model-len N   context length in tokens (131072); each byte is one token
  --latency-ms M[,S]  time before a call reaches the engine: median, and sigma of the lognormal (0)
  --jitter-ms N       up to so much more (0)
  --seed N            of jitter, faults, log-probabilities and the random policy (0)
  --logprobs-mode M   raw, temperature or processed; by default raw, and temperature on SGLang's routes
  --fault SPEC        what goes wrong on purpose; may be given several times
  --json              print {"url","port","model"} instead of the address

How fast it is:
  --prefill-tokens-per-s N       prompt tokens that are not cached; at once by default
  --ms-per-token N               a decoding step, one token of each running request (0)
  --ms-per-token-per-request N   how much longer the step is for each further request (0)
  --max-batch N                  requests at once; further ones wait; no limit by default
  --kv-tokens N                  memory of running requests and cached prefixes (4194304)

Policy: {"match": "text in the first user message", "variants": [[turn, ...], ...]}
The variant is the request's seed modulo their number, the turn the number of assistant messages.
Turn: {"content": "...", "tool_calls": [{"name": "...", "arguments": {...}}], "delay_ms": N}, and
"finish_reason" if it is an unusual one. Its strings may hold {{observation}}, the last tool
message, and {{observation:REGEX}}, the first group in it.

Fault: status=NNN, reset, stall, garbage or truncate, and for replies with token ids lengths, nan or
bad_ids; then any of rate=0.1 (share of the requests), turn=N, limit=N (at most so many) and, for a
status, retry_after=SECONDS. A fault with turn=N spares prompts that are no conversation, such as probes.
Example: --fault "status=503,rate=0.1"
While it runs, POST /simulator/faults {"faults": ["reset,rate=0.1"]} replaces them; [] ends them.

To size a cluster, give it your engine's figures, start one for each engine that you have or want, and run your rows:
  rolloutd simulate --policy random --turns 20,0.8 --tokens 300,0.6 --prefill-tokens-per-s 20000 \\
    --ms-per-token 8 --ms-per-token-per-request 0.15 --max-batch 128 --kv-tokens 600000
`;

export const simulateCommand: Command = {
  name: "simulate",
  summary: "the simulated inference engine: scripted answers in a real wire format",
  help: HELP,
  async run(argv) {
    const { values, positionals } = parseFlags(argv, SIMULATE_OPTIONS);
    refuseExtra(positionals, 0);
    return serve(await simulatorOptions(values), values);
  },
};

async function serve(options: SimulatorOptions, values: SimulateValues): Promise<number> {
  let simulator: Simulator;
  try {
    if (values["model-dir"] !== undefined) writeModelFolder(values["model-dir"]);
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

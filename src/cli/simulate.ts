import { rename } from "node:fs/promises";
import { writeModelFolder } from "../simulator/model-folder.ts";
import { PRESET_NAMES } from "../simulator/presets.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../simulator/simulator.ts";
import { type Command, EXIT } from "./command.ts";
import { parseFlags, refuseExtra, UsageError } from "./flags.ts";
import { exitOf, onStop, type Stop } from "./signals.ts";
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
  --max-model-len N   context length in tokens (131072, or the preset's model's, and at most what the memory
                      holds); each byte is a token
  --latency-ms M[,S]  time before a call reaches the engine: median, and sigma of the lognormal (0)
  --jitter-ms N       up to so much more (0)
  --seed N            of jitter, faults, log-probabilities and the random policy (0)
  --logprobs-mode M   raw, temperature or processed; by default raw, and temperature on SGLang's routes
  --fault SPEC        what goes wrong on purpose; may be given several times
  --json              print {"url","port","model"} instead of the address

How fast it is (by default it answers at once); a preset's figures are replaced by those that are given:
  --preset MODEL@GPU[xN]    a model on N GPUs in tensor parallel, bf16, computed from their data sheets and vLLM's defaults:
                            models: ${PRESET_NAMES.models.join(", ")}
                            GPUs: ${PRESET_NAMES.gpus.join(", ")}
  --ms-per-token N          milliseconds of a decoding step, which makes one token of each running request (0)
  --ms-per-10k-context N    milliseconds that each 10,000 tokens in the contexts of running requests add to it (0)
  --prefill-tokens-per-s N  prompt tokens that are not cached; nothing is decoded meanwhile; at once by default
  --max-batch N             requests at once; further ones wait; no limit by default
  --kv-tokens N             memory of running requests and cached prefixes, in tokens (4194304); where contexts outgrow it
                            the youngest request is thrown out, and computed again later
  --speed N                 all of this, and the latency, N times as fast; multiply what you measure by it (1)

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

To size a cluster, start one for each engine that you have or want, add them to a service, and run your rows, or random
rollouts as long as yours; scripts/examples/size_cluster.sh does it. Two runs of an engine of your own give its figures:
the time of a token with one short request (--ms-per-token), and with many long ones (--ms-per-10k-context).
  rolloutd simulate --policy random --turns 13,0.9 --tokens 250,0.6 --preset qwen3-14b@h100 --speed 10
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
    throw cannotServe(error, options.port ?? 0, values);
  }
  await using running = simulator;
  const { url, port } = running;
  const stopped = untilSignal();
  const portFile = values["port-file"];
  if (portFile !== undefined) {
    // Whoever waits for the file never reads half of it.
    try {
      await Bun.write(`${portFile}.part`, `${port}\n`);
      await rename(`${portFile}.part`, portFile);
    } catch (error) {
      throw new UsageError(`--port-file can't be written: ${(error as Error).message}`);
    }
  }
  const line = values.json ? JSON.stringify({ url, port, model: options.model }) : url;
  process.stdout.write(`${line}\n`);
  // SIGTERM is how it is meant to end.
  return (await stopped) === "SIGINT" ? exitOf("SIGINT") : EXIT.done;
}

function untilSignal(): Promise<Stop> {
  return new Promise((resolve) => {
    const listening = onStop((signal) => {
      listening[Symbol.dispose]();
      resolve(signal);
    });
  });
}

/** What the operating system refuses is a port or a folder that the command line names. */
function cannotServe(error: unknown, port: number, values: SimulateValues): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return new UsageError(`--port ${port} is in use; 0 takes a free one`);
  if (code === "EACCES" && values["model-dir"] === undefined) {
    return new UsageError(`--port ${port}: ports below 1024 are root's; 0 takes a free one`);
  }
  if (code === undefined) return error;
  const flag = values["model-dir"] === undefined ? "--port" : "--model-dir";
  return new UsageError(`${flag}: ${message}`);
}

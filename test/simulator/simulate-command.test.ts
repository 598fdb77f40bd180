import { expect, test } from "bun:test";
import { folderOf, modelOf } from "../inference/tokens/models.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const COMMAND = Bun.fileURLToPath(import.meta.resolve("../../src/cli/simulate.ts"));
const FLAGS = Bun.fileURLToPath(import.meta.resolve("../../src/cli/flags.ts"));

/** Runs the command as its own process; a usage error is printed the way `main.ts` does. */
function simulate(...args: string[]) {
  const script = `
    import { simulateCommand } from ${JSON.stringify(COMMAND)};
    import { UsageError } from ${JSON.stringify(FLAGS)};
    const run = simulateCommand.run(process.argv.slice(1), {});
    process.exitCode = await run.catch((error) => {
      if (!(error instanceof UsageError)) throw error;
      console.error(error.message);
      return 2;
    });`;
  return Bun.spawn([process.execPath, "-e", script, "--", ...args], {
    stdout: "pipe",
    stderr: "pipe",
  });
}

test("it writes its port to a file, prints its address, and ends with 0 at SIGTERM", async () => {
  using dir = tempDir();
  await using command = simulate("--echo", "--model", "qwen", "--port-file", dir.file("port"));
  await waitFor(() => Bun.file(dir.file("port")).exists(), "the port file");
  const port = Number(await Bun.file(dir.file("port")).text());
  const models = await fetch(`http://127.0.0.1:${port}/v1/models`);
  expect(await models.json()).toMatchObject({ data: [{ id: "qwen" }] });
  command.kill("SIGTERM");
  expect(await command.exited).toBe(0);
  expect(await command.stdout.text()).toBe(`http://127.0.0.1:${port}/v1\n`);
  expect(await command.stderr.text()).toBe("");
});

test("--json prints one object", async () => {
  await using command = simulate("--echo", "--json");
  const { value } = await command.stdout.getReader().read();
  const printed = JSON.parse(new TextDecoder().decode(value));
  const url = `http://127.0.0.1:${printed.port}/v1`;
  expect(printed).toEqual({ url, port: expect.any(Number), model: "simulated" });
});

test.each([
  [[], "give --policy FILE or --echo"],
  [["--echo", "--policy", "p"], "give --policy FILE or --echo"],
  [["--policy", "/nowhere/p.jsonl"], "--policy: ENOENT"],
  [["--echo", "--port", "99999"], "--port: "],
  [["--echo", "--latency-ms", "slow"], "--latency-ms: "],
  [["--echo", "--fault", "boom"], 'fault "boom": '],
  [["--echo", "--wire", "tgi"], "--wire: "],
  [["--policy", "random", "--turns", "many"], "--turns: must be a median"],
  [["--policy", "random", "--call", "{"], '--call: must be {"name": '],
  [["--echo", "--preset", "qwen3-14b"], "--preset: must be MODEL@GPU"],
  [["--echo", "--preset", "llama-3.1-70b@h100"], "--preset: llama-3.1-70b has 141 GB"],
  [["--echo", "--speed", "0"], "--speed: "],
  [["--echo", "--bogus"], "there is no flag --bogus"],
])("the arguments %j are a usage error", async (args, message) => {
  await using command = simulate(...args);
  expect(await command.exited).toBe(2);
  expect(await command.stderr.text()).toStartWith(message);
  expect(await command.stdout.text()).toBe("");
});

test("a preset's engine says its memory, and flags replace what it has", async () => {
  const flags = ["--preset", "qwen3-14b@h100", "--kv-tokens", "64000", "--speed", "100"];
  await using command = simulate("--echo", "--json", ...flags);
  const { value } = await command.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(value));
  const metrics = await (await fetch(url.replace("/v1", "/metrics"))).text();
  expect(metrics).toContain('block_size="16",num_gpu_blocks="4000"');
  const messages = [{ role: "user", content: "x".repeat(100) }];
  const body = JSON.stringify({ model: "simulated", messages });
  const startMs = performance.now();
  await fetch(`${url}/chat/completions`, { method: "POST", body });
  // 101 tokens of 11 ms, a hundred times as fast.
  expect(performance.now() - startMs).toBeWithin(11, 500);
});

test("--tokenizer speaks the ids of a real model", async () => {
  const folder = folderOf("qwen3");
  await using command = simulate("--echo", "--tokenizer", folder, "--json", "--wire", "vllm");
  const { value } = await command.stdout.getReader().read();
  const { url } = JSON.parse(new TextDecoder().decode(value));
  const { tokenizer } = await modelOf("qwen3");
  const prompt = "<|im_start|>user\nWhat is naïve?<|im_end|>\n<|im_start|>assistant\n";
  const token_ids = tokenizer.encode(prompt);
  const body = JSON.stringify({ token_ids, sampling_params: { max_tokens: 50 } });
  const generate = url.replace("/v1", "/inference/v1/generate");
  const reply = (await (await fetch(generate, { method: "POST", body })).json()) as {
    choices: { token_ids: number[] }[];
  };
  expect(reply.choices[0]?.token_ids).toEqual(tokenizer.encode("What is naïve?<|im_end|>"));
});

test("--tokenizer wants one that knows ChatML", async () => {
  await using command = simulate("--echo", "--tokenizer", folderOf("mistral_nemo"));
  expect(await command.exited).toBe(2);
  expect(await command.stderr.text()).toContain("has no token <|im_start|>");
});

test("a policy file that is wrong is named with line and field", async () => {
  using dir = tempDir();
  await Bun.write(dir.file("p.jsonl"), '{"match":"a","variants":[[{"content":1}]]}\n');
  await using command = simulate("--policy", dir.file("p.jsonl"));
  expect(await command.exited).toBe(2);
  expect(await command.stderr.text()).toStartWith("p.jsonl:1: variants[0][0].content: ");
});

import type { ToolSchema } from "../../src/inference/engine.ts";
import type { DialectName } from "../../src/inference/tokens/dialects/dialect.ts";
import { MarkedText } from "../../src/inference/tokens/dialects/marked-text.ts";
import { parseReply } from "../../src/inference/tokens/dialects/reply.ts";

type Question = { dialect: DialectName; text: string; tools: ToolSchema[] };

/** Reads replies for vllm_tests.py, a JSON line each. */
for await (const line of console) {
  if (line === "") continue;
  const { dialect, text, tools }: Question = JSON.parse(line);
  const source = MarkedText.ofText(text);
  console.log(JSON.stringify(parseReply(source, { dialect, tools, startsInReasoning: false })));
}

/** A server of the Model Context Protocol with one tool, `echo`; what it answers is data for the transports' tests. */
type Asked = {
  id?: number;
  method: string;
  params?: { name?: string; cursor?: string; arguments?: Record<string, unknown> };
};

export function answerOf({ id, method, params }: Asked): object | null {
  if (id === undefined) return null;
  const result = resultOf(method, params);
  const error = { code: -32_601, message: `there is no ${params?.name ?? method}` };
  return { jsonrpc: "2.0", id, ...(result ? { result } : { error }) };
}

function resultOf(method: string, params: Asked["params"]): object | null {
  if (method === "initialize") return { protocolVersion: "2025-03-26", capabilities: {} };
  if (method === "tools/list" && params?.cursor === undefined) {
    const inputSchema = { type: "object", properties: { text: { type: "string" } } };
    return { tools: [{ name: "echo", description: "Says it.", inputSchema }], nextCursor: "2" };
  }
  if (method === "tools/list") return { tools: [{ name: "finish" }] };
  if (method !== "tools/call" || params?.name !== "echo") return null;
  const { text } = params.arguments ?? {};
  if (text === "fail") return { content: [{ type: "text", text: "no" }], isError: true };
  return {
    content: [
      { type: "text", text: `you said ${text}` },
      { type: "image", data: "…" },
    ],
  };
}

if (import.meta.main) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: "s1", method: "ping" })}\n`);
  for await (const line of console) {
    const message = JSON.parse(line) as Asked;
    const { text } = message.params?.arguments ?? {};
    if (text === "die") process.exit(1);
    if (text === "sleep") continue;
    if (text === "env") {
      const content = [{ type: "text", text: Object.keys(process.env).sort().join(" ") }];
      console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { content } }));
      continue;
    }
    const answer = answerOf(message);
    if (answer) console.log(JSON.stringify(answer));
  }
}

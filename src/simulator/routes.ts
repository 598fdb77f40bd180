import {
  abortRequest,
  abortRequests,
  detokenize,
  flushCache,
  getLoad,
  getWeightVersion,
  health,
  isPaused,
  listFaults,
  metrics,
  modelInfo,
  models,
  pause,
  pauseGeneration,
  resume,
  serverInfo,
  setFaults,
  tokenize,
  updateWeightVersion,
  version,
} from "./control.ts";
import { type Serving, serveGeneration } from "./generation.ts";
import { type Format, type SimulatedWire, WIRES } from "./wires/format.ts";
import { openAiChat } from "./wires/openai-chat.ts";
import { prorlGenerate } from "./wires/prorl.ts";
import { sglangGenerate } from "./wires/sglang.ts";
import { completions, generate } from "./wires/vllm.ts";

type Route = {
  method: "GET" | "POST" | "ANY";
  path: string;
  wires: SimulatedWire[];
  handle(serving: Serving, request: Request): Response | Promise<Response>;
};

const VLLM: SimulatedWire[] = ["all", "vllm"];
const ANY_VLLM: SimulatedWire[] = [...VLLM, "vllm-old"];
const SGLANG: SimulatedWire[] = ["all", "sglang", "sglang-old"];
const CHAT: SimulatedWire[] = [...ANY_VLLM, "sglang", "sglang-old", "openai"];
const TOKENIZING: SimulatedWire[] = [...ANY_VLLM, "sglang", "sglang-old"];
const WEIGHTS: SimulatedWire[] = [...VLLM, "sglang", "sglang-old"];

function routesOf(wire: SimulatedWire): Route[] {
  const model = (format: Format) => (serving: Serving, request: Request) =>
    serveGeneration(serving, format, request);
  const chat = model(openAiChat(wire));
  const complete = model(completions(wire === "vllm-old"));
  const showTokens = detokenize(wire === "sglang" || wire === "sglang-old");
  const ownGenerate = model(generateOf(wire));
  return [
    { method: "GET", path: "/health", wires: CHAT, handle: health },
    { method: "GET", path: "/v1/models", wires: CHAT, handle: models },
    { method: "POST", path: "/v1/chat/completions", wires: CHAT, handle: chat },
    { method: "GET", path: "/version", wires: ANY_VLLM, handle: version },
    { method: "GET", path: "/metrics", wires: ANY_VLLM, handle: metrics },
    { method: "POST", path: "/inference/v1/generate", wires: VLLM, handle: model(generate) },
    { method: "POST", path: "/v1/completions", wires: ANY_VLLM, handle: complete },
    { method: "GET", path: "/is_paused", wires: VLLM, handle: isPaused },
    { method: "GET", path: "/weight_info", wires: VLLM, handle: getWeightVersion },
    { method: "GET", path: "/get_load", wires: SGLANG, handle: getLoad },
    { method: "POST", path: "/pause", wires: VLLM, handle: pause },
    { method: "POST", path: "/resume", wires: VLLM, handle: resume },
    { method: "POST", path: "/abort_requests", wires: VLLM, handle: abortRequests },
    { method: "POST", path: "/inference/v1/abort_requests", wires: VLLM, handle: abortRequests },
    { method: "POST", path: "/pause_generation", wires: SGLANG, handle: pauseGeneration },
    { method: "POST", path: "/continue_generation", wires: SGLANG, handle: resume },
    { method: "POST", path: "/abort_request", wires: SGLANG, handle: abortRequest },
    { method: "POST", path: "/reset_prefix_cache", wires: ANY_VLLM, handle: flushCache },
    { method: "POST", path: "/generate", wires: [...SGLANG, "prorl"], handle: ownGenerate },
    { method: "GET", path: "/get_model_info", wires: SGLANG, handle: modelInfo },
    { method: "GET", path: "/server_info", wires: SGLANG, handle: serverInfo },
    { method: "GET", path: "/get_weight_version", wires: SGLANG, handle: getWeightVersion },
    { method: "POST", path: "/update_weight_version", wires: WEIGHTS, handle: updateWeightVersion },
    { method: "ANY", path: "/flush_cache", wires: SGLANG, handle: flushCache },
    { method: "POST", path: "/tokenize", wires: TOKENIZING, handle: tokenize },
    { method: "GET", path: "/simulator/faults", wires: [...WIRES], handle: listFaults },
    { method: "POST", path: "/simulator/faults", wires: [...WIRES], handle: setFaults },
    { method: "POST", path: "/detokenize", wires: TOKENIZING, handle: showTokens },
  ];
}

/** SGLang and ProRL share a path; where both are served, the prompt's name tells them apart. */
function generateOf(wire: SimulatedWire): Format {
  if (wire === "sglang" || wire === "sglang-old") return sglangGenerate(wire === "sglang-old");
  if (wire === "prorl") return prorlGenerate;
  return (body) => {
    const isProrl = typeof body === "object" && body !== null && "prompt_ids" in body;
    return isProrl ? prorlGenerate(body) : sglangGenerate(false)(body);
  };
}

type Handlers = Record<string, Record<string, (request: Request) => Response | Promise<Response>>>;

/** What Bun's server takes as routes. */
export function serveRoutes(serving: Serving, wire: SimulatedWire): Handlers {
  const served: Handlers = {};
  for (const { method, path, wires, handle } of routesOf(wire)) {
    if (!wires.includes(wire)) continue;
    const handler = (request: Request) => handle(serving, request);
    const methods = method === "ANY" ? ["GET", "POST"] : [method];
    const added = Object.fromEntries(methods.map((name) => [name, handler]));
    served[path] = { ...served[path], ...added };
  }
  return served;
}

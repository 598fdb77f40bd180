import { fromErrorBody } from "../errors.ts";
import { Connections } from "../inference/exchange.ts";
import { openAiChat } from "../inference/openai-chat.ts";
import { tokenEngine } from "../inference/token-engine.ts";
import { tokenModels } from "../inference/tokens/token-models.ts";
import { TurnGate } from "../inference/turn-gate.ts";
import type { FromWorker, StartStage, ToWorker, WorkerSettings } from "../pipeline/messages.ts";
import { attachSandbox } from "../sandbox/attach.ts";
import { createDriver } from "../sandbox/driver.ts";
import { endReported } from "../sandbox/end-reported.ts";
import { Images } from "../sandbox/images/images.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import { watchSandbox } from "../sandbox/watchdog.ts";
import { createLog } from "../telemetry/log.ts";
import { runStage, type StageParts } from "./run-stage.ts";

declare const self: Worker;

const log = createLog("warn");
const running = new Map<string, AbortController>();
let outbox: FromWorker[] = [];
let shared: Omit<StageParts, "sandboxStarted"> | undefined;

/** Events of one turn of the event loop leave as one message. */
function send(event: FromWorker): void {
  if (outbox.push(event) > 1) return;
  setImmediate(() => {
    self.postMessage(outbox);
    outbox = [];
  });
}

const turns = new TurnGate(send);
const tokenModel = tokenModels(new Connections());

function setUp(settings: WorkerSettings): void {
  shared = {
    settings,
    driver: createDriver(settings.driver, settings),
    images: new Images(settings.images),
    attach: attachSandbox,
    watch: (handle) => watchSandbox(handle, settings.sandbox),
    end: (handle) => endReported(handle, log),
    engines: { chat: openAiChat(), tokens: tokenEngine(), turns, tokenModel },
  };
  send({ type: "ready" });
}

async function work(start: StartStage): Promise<void> {
  if (!shared) throw new Error("a stage was started before the thread was set up");
  const { jobId, attempt } = start;
  const key = `${jobId}.${attempt}`;
  const controller = new AbortController();
  running.set(key, controller);
  const sandboxStarted = (handle: SandboxHandle) =>
    send({ type: "sandbox_started", jobId, attempt, handle });
  const finished = await runStage(start, { ...shared, sandboxStarted }, controller.signal);
  running.delete(key);
  send(finished);
}

self.onmessage = ({ data }: MessageEvent<ToWorker[]>) => {
  for (const message of data) {
    if (message.type === "setup") setUp(message.settings);
    else if (message.type === "start") work(message);
    else if (message.type === "cancel") {
      running.get(`${message.jobId}.${message.attempt}`)?.abort(fromErrorBody(message.reason));
    } else turns.receive(message);
  }
};

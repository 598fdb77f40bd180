import { Pace } from "../agent/pace.ts";
import { fromErrorBody } from "../errors.ts";
import { Connections } from "../inference/exchange.ts";
import { openAiChat } from "../inference/openai-chat.ts";
import { tokenEngine } from "../inference/token-engine.ts";
import { tokenModels } from "../inference/tokens/token-models.ts";
import { TurnGate } from "../inference/turn-gate.ts";
import type {
  AllowTurns,
  FromWorker,
  StartStage,
  ToWorker,
  WarmUp,
  WorkerSettings,
} from "../pipeline/messages.ts";
import { attachSandbox } from "../sandbox/attach.ts";
import { createDriver } from "../sandbox/driver.ts";
import { endReported } from "../sandbox/end-reported.ts";
import { Images } from "../sandbox/images/images.ts";
import { imageOnNode } from "../sandbox/images/on-node.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import { watchSandbox } from "../sandbox/watchdog.ts";
import { loadTaskModules } from "../tasks/load-modules.ts";
import { createLog } from "../telemetry/log.ts";
import { Recorder } from "../trajectory/recorder.ts";
import { RecordTurns } from "./record-turns.ts";
import { runStage, type StageParts } from "./run-stage.ts";
import { WarmDriver, warmUp } from "./warm.ts";

declare const self: Worker;

const log = createLog("warn");
type Running = { controller: AbortController; allow(message: AllowTurns): void };
const running = new Map<string, Running>();
let outbox: FromWorker[] = [];
/** A stage that is started meanwhile waits; a module that can't be loaded ends the thread. */
let ready: Promise<void> | undefined;
let shared: Omit<StageParts, "sandboxStarted" | "pace" | "slotFreed"> | undefined;
const records = new RecordTurns();

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

async function setUp(settings: WorkerSettings): Promise<void> {
  await loadTaskModules(settings.tasks.modules);
  shared = {
    settings,
    driver: createDriver(settings.driver, settings),
    images: new Images(settings.images),
    isOnNode: (image) => imageOnNode(settings.images, image) !== null,
    attach: attachSandbox,
    watch: watchSandbox,
    end: (handle) => endReported(handle, log),
    engines: { chat: openAiChat(), tokens: tokenEngine(), turns, tokenModel },
  };
  send({ type: "ready" });
}

async function work(start: StartStage): Promise<void> {
  const { jobId, attempt } = start;
  const key = `${jobId}.${attempt}`;
  const controller = new AbortController();
  const recorder = new Recorder(jobId, attempt);
  let renewal = 0;
  const pace = new Pace(start.allowance, () =>
    send({ type: "rollout_paused", jobId, attempt, renewal, record: recorder.toJson() }),
  );
  const allow = (message: AllowTurns) => {
    renewal = message.renewal;
    pace.allow(message.allowance);
  };
  running.set(key, { controller, allow });
  await ready;
  if (!shared) throw new Error("a stage was started before the thread was set up");
  const sandboxStarted = (handle: SandboxHandle) =>
    send({ type: "sandbox_started", jobId, attempt, handle });
  const { images } = shared;
  const acquire = async (image: string, signal: AbortSignal) => {
    const lease = await images.acquire(image, signal);
    send({ type: "image_found", jobId, attempt, path: lease.path });
    return lease;
  };
  const driver = new WarmDriver(shared.driver, start.warm, shared.end);
  const slotFreed = () => {
    send({ type: "slot_freed", jobId, attempt, stage: start.stage });
    return records.next();
  };
  const parts = { ...shared, driver, images: { acquire }, sandboxStarted, pace, slotFreed };
  const finished = await runStage(start, parts, controller.signal, recorder);
  await driver.endUnused();
  running.delete(key);
  send(finished);
}

async function warm(message: WarmUp): Promise<void> {
  if (!shared) throw new Error("a sandbox was asked for before the thread was set up");
  send({ type: "warmed_up", id: message.id, warm: await warmUp(message, shared) });
}

self.onmessage = ({ data }: MessageEvent<ToWorker[]>) => {
  for (const message of data) {
    if (message.type === "setup") ready = setUp(message.settings);
    else if (message.type === "start") work(message);
    else if (message.type === "warm_up") warm(message);
    else if (message.type === "allow_turns") {
      running.get(`${message.jobId}.${message.attempt}`)?.allow(message);
    } else if (message.type === "ping") send({ type: "pong" });
    else if (message.type === "cancel") {
      const job = running.get(`${message.jobId}.${message.attempt}`);
      job?.controller.abort(fromErrorBody(message.reason));
    } else turns.receive(message);
  }
};

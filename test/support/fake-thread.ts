import type {
  AllowTurns,
  CancelStage,
  FromWorker,
  StageFinished,
  StartStage,
  ToWorker,
} from "../../src/pipeline/messages.ts";
import type { WorkerThread } from "../../src/pipeline/pool.ts";

/** A worker thread that does what the test tells it, so that every order of events can be made. */
export class FakeThread implements WorkerThread {
  readonly received: ToWorker[] = [];
  terminated = false;
  onStart: (start: StartStage) => void = () => {};
  onAllow: (allow: AllowTurns) => void = () => {};
  onCancel: (cancel: CancelStage) => void = () => {};
  #onEvents: (events: FromWorker[]) => void = () => {};
  #onCrash: (reason: string) => void = () => {};

  post(messages: ToWorker[]): void {
    this.received.push(...messages);
    for (const message of messages) {
      if (message.type === "start") this.onStart(message);
      if (message.type === "allow_turns") this.onAllow(message);
      if (message.type === "cancel") this.onCancel(message);
    }
  }

  listen(onEvents: (events: FromWorker[]) => void, onCrash: (reason: string) => void): void {
    this.#onEvents = onEvents;
    this.#onCrash = onCrash;
  }

  terminate(): void {
    this.terminated = true;
  }

  starts(): StartStage[] {
    return this.received.filter((message) => message.type === "start");
  }

  emit(...events: FromWorker[]): void {
    this.#onEvents(events);
  }

  crash(reason: string): void {
    this.#onCrash(reason);
  }

  /** Answers a start, as a success unless `answer` says otherwise. */
  finish(start: StartStage, answer: Partial<StageFinished> = {}): void {
    const { jobId, attempt, stage } = start;
    const verdict = { reward: 1, rule: "fake", reason: "The test said so." };
    const outcome = { stop_reason: "done", final_message: null, turns: 0 };
    this.emit({
      type: "stage_finished",
      jobId,
      attempt,
      stage,
      handle: null,
      error: null,
      outcome: stage === "run" && !answer.error ? JSON.stringify(outcome) : null,
      trajectory: null,
      verdict: stage === "eval" && !answer.error ? verdict : null,
      ...answer,
    });
  }
}

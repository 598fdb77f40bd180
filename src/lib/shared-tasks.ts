import { abortable } from "./abortable.ts";

type Running<T> = { result: Promise<T>; waiting: number; controller: AbortController };

/**
 * Concurrent calls for one key share one run. A caller whose signal aborts leaves at once; the run itself is
 * aborted when nobody waits for it any more.
 */
export class SharedTasks<T> {
  readonly #running = new Map<string, Running<T>>();

  async run(
    key: string,
    signal: AbortSignal,
    start: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const task = this.#running.get(key) ?? this.#start(key, start);
    task.waiting++;
    try {
      return await abortable(task.result, signal);
    } finally {
      if (--task.waiting === 0) {
        this.#forget(key, task);
        task.controller.abort(signal.reason);
      }
    }
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<T>): Running<T> {
    const controller = new AbortController();
    const task = { result: start(controller.signal), waiting: 0, controller };
    this.#running.set(key, task);
    const forget = () => this.#forget(key, task);
    task.result.then(forget, forget);
    return task;
  }

  #forget(key: string, task: Running<T>): void {
    if (this.#running.get(key) === task) this.#running.delete(key);
  }
}

/** `promise`, unless one of `signals` aborts first: then its reason, at once. */
export function abortable<T>(
  promise: Promise<T>,
  ...signals: (AbortSignal | undefined)[]
): Promise<T> {
  const present = signals.filter((signal) => signal !== undefined);
  if (present.length === 0) return promise;
  const aborted = present.find((signal) => signal.aborted);
  if (aborted) {
    promise.catch(() => {});
    return Promise.reject(aborted.reason);
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = (event: Event) => settle(() => reject((event.target as AbortSignal).reason));
    const settle = (finish: () => void) => {
      for (const signal of present) signal.removeEventListener("abort", onAbort);
      finish();
    };
    for (const signal of present) signal.addEventListener("abort", onAbort);
    promise.then(
      (value) => settle(() => resolve(value)),
      (error) => settle(() => reject(error)),
    );
  });
}

/** `promise`, or `fallback` after `ms`. The promise goes on; only the wait ends. */
export function atMost<T, F>(promise: Promise<T>, ms: number, fallback: F): Promise<T | F> {
  return new Promise<T | F>((resolve, reject) => {
    const timer = setTimeout(() => resolve(fallback), ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

/** Waits `ms`, or rejects with the abort reason of `signal`. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

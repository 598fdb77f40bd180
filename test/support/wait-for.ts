/** Polls until `condition` gives a truthy value, and returns it. */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  what: string,
  timeoutMs = 20_000,
): Promise<Exclude<T, false | null | undefined>> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value as Exclude<T, false | null | undefined>;
    if (performance.now() > until) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`);
    await Bun.sleep(5);
  }
}

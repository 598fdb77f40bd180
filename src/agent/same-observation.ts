/** What is another one each time a command runs, and says nothing about what it did. */
const FLEETING = [
  /\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?\b/g,
  /\b\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?\b/g,
  /\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|secs|seconds?|minutes?)\b/g,
  /\b0x[0-9a-f]{6,16}\b/gi,
];

/** Whether a tool's answer is the one that it gave before, but for times, durations and addresses of memory. */
export function isSameObservation(now: string, then: string): boolean {
  return now === then || lasting(now) === lasting(then);
}

function lasting(text: string): string {
  return FLEETING.reduce((rest, pattern) => rest.replaceAll(pattern, "…"), text);
}

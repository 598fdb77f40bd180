const MONTH =
  "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|t?ember|ober)?";
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:s|nes|rs|ur)?(?:day)?";

/** What is another one each time a command runs, and says nothing about what it did. */
const FLEETING = [
  // Dates and times: ISO 8601, those of `date` and `ls -l`, and seconds or milliseconds since 1970.
  /\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z| ?[+-]\d\d:?\d\d)?\b/g,
  /\b\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: [AP]M\b)?/g,
  new RegExp(
    `\\b(?:${DAY},? +)?(?:${MONTH} +\\d{1,2}(?:,? +\\d{4})?|\\d{1,2} +${MONTH} +\\d{4})\\b`,
    "g",
  ),
  /\b1[6-9]\d{8}(?:\d{3}|\.\d+)?\b/g,
  // Durations, also those of `time`, and speeds.
  /\b(?:\d+h)?\d+m ?\d+(?:\.\d+)?s\b/g,
  /\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:ns|µs|us|ms|s|sec|secs|seconds?|minutes?)\b/g,
  /\b\d+(?:\.\d+)? ?(?:(?:[kKMGT]i?)?B|it)\/s\b/g,
  // Addresses of memory, processes and the jobs of a shell, ports that were free.
  /\b0x[0-9a-f]{6,16}\b/gi,
  /\bpid[ =:#]+\d+\b/gi,
  /^\[\d+\][ +-]+\d+$/gm,
  /(?<=\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):)\d{4,5}\b/g,
  // Names of temporary files as `mktemp` and Python make them, UUIDs, commits (a commit has its time in it).
  /\btmp(?:\.[A-Za-z0-9]{10}|[a-z0-9_]{8})\b/g,
  /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi,
  /(?<=\bcommit )[0-9a-f]{40}\b/g,
  /\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,12}\b/g,
];

/** Whether a tool's answer is the one that it gave before, but for what is another one each time. */
export function isSameObservation(now: string, then: string): boolean {
  return now === then || lasting(now) === lasting(then);
}

function lasting(text: string): string {
  return FLEETING.reduce((rest, pattern) => rest.replaceAll(pattern, "…"), text);
}

import { expect, test } from "bun:test";
import { isSameObservation } from "../../src/agent/same-observation.ts";

/** Answers of two runs of one command, by what differs. */
const SAME: Record<string, [string, string]> = {
  "ISO times": ["built 2026-11-21T23:59:59.123Z", "built 2026-11-22T00:00:01.4Z"],
  "git's dates": ["2026-11-21 23:59:59 +0100", "2026-11-22 00:00:01 +0100"],
  date: ["Sat Nov 21 23:59:59 UTC 2026", "Sun Nov 22 00:00:01 UTC 2026"],
  "ls -l": ["-rw-r--r-- 1 u u 12 Nov  1 09:15 a.py", "-rw-r--r-- 1 u u 12 Nov 21 23:15 a.py"],
  "seconds since 1970": ["1795304237\n1795304237.88", "1795390000\n1795390000.1"],
  time: ["real\t0m0.012s\nuser\t1m2.5s", "real\t0m1.112s\nuser\t0m2.6s"],
  pytest: ["=== 5 passed in 0.34s ===", "=== 5 passed in 12.01s ==="],
  unittest: ["Ran 3 tests in 0.001s\n\nOK", "Ran 3 tests in 0.012s\n\nOK"],
  timeit: ["1000 loops, best of 5: 1.2e-05 sec", "1000 loops, best of 5: 9.81e-06 sec"],
  speeds: ["(12.3 MB/s) 45.1it/s", "(9 MB/s) 101it/s"],
  addresses: ["<A object at 0x7f12ab34cd56>", "<A object at 0x7f99ab34cd00>"],
  "a job of the shell": ["[1] 42\nstarted, pid 42", "[1] 57\nstarted, pid 57"],
  ports: ["http://127.0.0.1:43217/", "http://127.0.0.1:51000/"],
  mktemp: ["/tmp/tmp.Ab3dEf9hIj", "/tmp/tmp.zZ0aaaaaaa"],
  "Python's tempfile": ["/tmp/tmpa8_x9k2q/out", "/tmp/tmpzz11yy22/out"],
  UUIDs: ["6f1c2d3e-4b5a-4978-8a9b-0c1d2e3f4a5b", "00000000-4b5a-4978-8a9b-0c1d2e3f4a5b"],
  "git commit": ["[main 3f2a1b9] Fix it", "[main a81c00f] Fix it"],
  "git log": [`commit ${"3f".repeat(20)}\n\n    Fix`, `commit ${"0a".repeat(20)}\n\n    Fix`],
};

const DIFFERENT: Record<string, [string, string]> = {
  "an exit code": ["finished with exit code 0", "finished with exit code 1"],
  "how many pass": ["5 passed in 0.34s", "4 passed, 1 failed in 0.34s"],
  "a number": ["answer 41", "answer 42"],
  "a size": ["1 u u 12 Nov 21 09:15 a.py", "1 u u 13 Nov 21 09:15 a.py"],
  "a line of a program": ["a.py:12: error", "a.py:13: error"],
  "a file's name": ["/tmp/template.py", "/tmp/templates.py"],
  "a sum of a file": ["9e107d9d372bb6826bd81d3542a419d6  a", "e4d909c290d0fb1ca068ffaddf22cbd0  a"],
  "a port that was asked for": ["listen 8080", "listen 8081"],
  "a speed that was worked out": ["it falls at 5 m/s", "it falls at 6 m/s"],
  "a name that was chosen": ["/tmp/tmp_out_first", "/tmp/tmp_out_other"],
  "what begins like a month": ["Mark 12", "Mark 13"],
  "a word of hex letters": ["a defaced facade", "a facade defaced"],
  "a number of seven digits": ["sum 1234567", "sum 1234568"],
  "a version": ["numpy 1.26.4", "numpy 2.0.0"],
};

test.each(Object.entries(SAME))("two answers are the same but for %s", (_, [now, then]) => {
  expect(isSameObservation(now, then)).toBe(true);
});

test.each(Object.entries(DIFFERENT))(
  "two answers that differ by %s are not the same",
  (_, [now, then]) => {
    expect(isSameObservation(now, then)).toBe(false);
  },
);

test("two long answers are compared in a moment, whatever is in them", () => {
  const hostile = [
    "1".repeat(100_000),
    "a1".repeat(50_000),
    "Nov ".repeat(25_000),
    "0x".repeat(50_000),
  ];
  const startMs = performance.now();
  for (const text of [
    ...hostile,
    "1m".repeat(50_000),
    " 1".repeat(50_000),
    "pid ".repeat(25_000),
  ]) {
    expect(isSameObservation(`${text}x`, `${text}y`)).toBe(false);
  }
  expect(performance.now() - startMs).toBeLessThan(5000);
});

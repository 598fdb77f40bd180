import { expect, test } from "bun:test";
import { FaultSource, parseFault } from "../../src/simulator/faults.ts";
import { lognormal } from "../../src/simulator/random-policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";

test("a fault is a kind and what narrows it", () => {
  const any = { status: 500, retryAfterS: null, rate: 1, turn: null, limit: null };
  expect(parseFault("reset")).toEqual({ ...any, kind: "reset" });
  expect(parseFault("status=503, rate=0.1, retry_after=2")).toEqual({
    ...any,
    kind: "status",
    status: 503,
    rate: 0.1,
    retryAfterS: 2,
  });
  expect(parseFault("stall,turn=2,limit=1")).toEqual({ ...any, kind: "stall", turn: 2, limit: 1 });
});

test.each([
  [
    "explode",
    "must begin with status=NNN or one of reset, stall, garbage, truncate, lengths, nan, bad_ids",
  ],
  ["status", "must begin with"],
  ["reset=1", "must begin with"],
  ["status=200", "status: "],
  ["reset,rate=2", "rate: "],
  ["reset,turn=-1", "turn: "],
  ["reset,speed=1", "Unrecognized key"],
])("the fault %p is refused: %s", (text, message) => {
  expect(() => parseFault(text)).toThrow(`fault "${text}": ${message}`);
});

const hits = (source: FaultSource, n: number, turn = 0) =>
  Array.from({ length: n }, (_, number) => (source.next(number, turn) ? number : -1)).filter(
    (number) => number >= 0,
  );

test("the same seed spoils the same requests, at the rate that was asked for", () => {
  const faults = [parseFault("reset,rate=0.1")];
  const first = hits(new FaultSource(faults, 1), 10_000);
  expect(first).toEqual(hits(new FaultSource(faults, 1), 10_000));
  expect(first).not.toEqual(hits(new FaultSource(faults, 2), 10_000));
  expect(first.length).toBeWithin(900, 1_100);
});

test("a fault keeps to its turn and its limit, and the next one takes over", () => {
  const source = new FaultSource([parseFault("stall,turn=1,limit=2"), parseFault("reset")], 0);
  const kinds = [0, 1, 1, 1].map((turn, number) => source.next(number, turn)?.kind);
  expect(kinds).toEqual(["reset", "stall", "stall", "reset"]);
});

test("faults can be replaced while the engine runs", async () => {
  await using simulator = await startSimulator({ policy: { kind: "echo" } });
  const root = simulator.url.replace("/v1", "");
  const set = async (body: unknown) => {
    const init = { method: "POST", body: JSON.stringify(body) };
    return (await fetch(`${root}/simulator/faults`, init)).status;
  };
  const chat = async () => {
    const body = JSON.stringify({ model: "simulated", messages: [{ role: "user", content: "a" }] });
    return (await fetch(`${simulator.url}/chat/completions`, { method: "POST", body })).status;
  };
  expect([await chat(), await set({ faults: ["status=503"] }), await chat()]).toEqual([
    200, 200, 503,
  ]);
  expect([await set({ faults: ["boom"] }), await set({}), await chat()]).toEqual([400, 400, 503]);
  const listed = await (await fetch(`${root}/simulator/faults`)).json();
  expect(listed).toMatchObject({ faults: [{ kind: "status", status: 503 }] });
  expect([await set({ faults: [] }), await chat()]).toEqual([200, 200]);
});

test("latencies are spread as they are asked to be", async () => {
  const values = Array.from({ length: 2_000 }, (_, n) =>
    lognormal({ median: 100, sigma: 1 }, 5, n),
  );
  const sorted = values.toSorted((a, b) => a - b);
  expect(sorted[1_000]).toBeWithin(90, 111);
  // A lognormal's 84th percentile is e to the sigma times its median.
  expect(sorted[1_683]).toBeWithin(240, 305);
  expect(lognormal({ median: 100, sigma: 0 }, 5, 1)).toBe(100);
});

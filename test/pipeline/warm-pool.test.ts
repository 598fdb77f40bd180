import { describe, expect, test } from "bun:test";
import { processStartTime } from "../../src/lib/proc.ts";
import type { WarmSandbox } from "../../src/pipeline/messages.ts";
import { WarmPool } from "../../src/pipeline/warm-pool.ts";
import { fakeHandle } from "../support/fake-sandbox.ts";

const MINUTE = 60_000;
const ALIVE = { holderPid: process.pid, holderStartTime: processStartTime(process.pid) ?? "" };

function setup(size = 4) {
  const state = { nowMs: 0, tight: false, room: 16, starting: 0 };
  const ended: string[] = [];
  const asked: { id: string; image: string }[] = [];
  const pool = new WarmPool({
    size,
    nowMs: () => state.nowMs,
    start: (id, image) => asked.push({ id, image }),
    end: ({ id }) => ended.push(id),
    isTight: () => state.tight,
    wake: () => {},
  });
  const warm = (id: string, changes = {}): WarmSandbox => ({
    handle: { ...fakeHandle(id), ...ALIVE, ...changes },
    spec: { id } as WarmSandbox["spec"],
  });
  const tend = () => pool.tend(state.starting, state.room);
  return {
    state,
    ended,
    pool,
    warm,
    tend,
    /** Starts what the pool asks for until it asks no more; gives the images in order. */
    fill(): string[] {
      const images: string[] = [];
      for (;;) {
        tend();
        const next = asked.shift();
        if (!next) return images;
        images.push(next.image);
        pool.started(next.id, warm(`${next.image}${images.length}`));
      }
    },
    asked,
    /** Two jobs make a demand. */
    demand(...images: string[]) {
      for (const image of images) for (let i = 0; i < 2; i++) pool.take(image);
    },
    [Symbol.dispose]: () => pool.endAll(),
  };
}

describe("the warm pool", () => {
  test("keeps sandboxes of images in demand, each image's share, and hands them out", () => {
    using t = setup(4);
    t.pool.take("c");
    expect(t.fill()).toEqual([]);
    t.demand("a", "b");
    expect(t.fill()).toEqual(["b", "a", "b", "a"]);
    expect(t.pool.take("a")?.handle.id).toBe("a2");
    expect(t.pool.take("c")).toBeNull();
    expect(t.fill()).toEqual(["c"]);
    expect(t.ended).toEqual([]);
  });

  test("makes room for an image that has none, by one of which there are several", () => {
    using t = setup(2);
    t.demand("a");
    expect(t.fill()).toEqual(["a", "a"]);
    t.demand("b");
    expect(t.fill()).toEqual(["b"]);
    expect(t.ended).toEqual(["a1"]);
  });

  test("starts one at a time, and none while jobs start", () => {
    using t = setup();
    t.demand("a");
    t.state.starting = 1;
    t.tend();
    expect(t.asked).toEqual([]);
    t.state.starting = 0;
    t.tend();
    t.tend();
    expect(t.asked).toEqual([{ id: expect.stringMatching(/^[0-9a-f]{20}\.1$/), image: "a" }]);
  });

  test("lets go of them when there is no room, the node is short of memory, or nobody asks", () => {
    using t = setup(3);
    t.demand("a");
    t.fill();
    t.state.room = 1;
    t.tend();
    expect(t.ended).toEqual(["a1", "a2"]);
    t.state.room = 16;
    t.fill();
    t.state.tight = true;
    t.tend();
    expect(t.pool.size).toBe(0);
    t.state.tight = false;
    t.fill();
    expect(t.pool.size).toBe(3);
    t.state.nowMs += MINUTE + 1;
    t.tend();
    expect(t.pool.size).toBe(0);
    expect(t.fill()).toEqual([]);
  });

  test("hands out none that has died, and ends it", () => {
    using t = setup(1);
    t.demand("a");
    t.tend();
    const { id } = t.asked[0] as { id: string };
    t.pool.started(id, t.warm("dead", { holderStartTime: "1" }));
    expect(t.pool.take("a")).toBeNull();
    expect(t.ended).toEqual(["dead"]);
  });

  test("ends one that arrives when nobody waits for it any more, and gives up one that fails", () => {
    using t = setup();
    t.demand("a");
    t.tend();
    t.pool.lost();
    t.pool.started("late", t.warm("late"));
    expect(t.ended).toEqual(["late"]);
    t.tend();
    t.pool.started(t.asked.at(-1)?.id ?? "", null);
    t.asked.length = 0;
    expect(t.fill()).toEqual([]);
  });

  test("ends those of an image that starts no more, as soon as nobody has asked for long", () => {
    using t = setup(2);
    t.demand("a");
    t.tend();
    t.pool.started(t.asked.shift()?.id ?? "", t.warm("a0"));
    t.tend();
    t.pool.started(t.asked.shift()?.id ?? "", null);
    expect([t.fill(), t.pool.size]).toEqual([[], 1]);
    t.state.nowMs += MINUTE + 1;
    t.tend();
    expect([t.ended, t.pool.size]).toEqual([["a0"], 0]);
  });

  test("of size 0 does nothing", () => {
    using t = setup(0);
    t.demand("a");
    expect(t.fill()).toEqual([]);
  });
});

import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { DIALECT_NAMES, type DialectName } from "../../src/inference/tokens/dialects/dialect.ts";
import { fieldPath } from "../../src/lib/field-path.ts";
import { canonicalJson, parseBody } from "../../src/protocol/parse.ts";
import { chatSchema, DIALECTS, submitSchema } from "../../src/protocol/rollout.ts";
import { failureOf } from "../support/failure.ts";
import { randomFrom } from "../support/random.ts";

const ECHO = { instance: { data_source: "echo" } };

describe("a path", () => {
  test.each([
    [[], ""],
    [["limits"], "limits"],
    [["rollouts", 2, "limits", "run_ms"], "rollouts[2].limits.run_ms"],
    [["agent", "tools", 0], "agent.tools[0]"],
    [[0, "id"], "[0].id"],
  ])("%j is written %j", (path, text) => {
    expect(fieldPath(path)).toBe(text);
  });
});

describe("a body", () => {
  const refusal = async (body: unknown) => {
    const { code, field } = await failureOf(() => parseBody(submitSchema, body));
    return [code, field];
  };

  test("that is right is given back as it was parsed", () => {
    const body = { rollouts: [ECHO], wait_ms: 5 };
    expect(parseBody(submitSchema, body)).toEqual(body);
  });

  test.each([
    [{ rollouts: [ECHO, { ...ECHO, limits: { run_ms: "1" } }] }, "rollouts[1].limits.run_ms"],
    [{ rollouts: [{ instance: {} }] }, "rollouts[0].instance.data_source"],
    [{ rollouts: [{ ...ECHO, id: "../etc" }] }, "rollouts[0].id"],
    [{ rollouts: [{ ...ECHO, image: "not/absolute" }] }, "rollouts[0].image"],
    [{ rollouts: [{ ...ECHO, agent: { tools: ["dig"] } }] }, "rollouts[0].agent.tools[0]"],
    [{ rollouts: [{ ...ECHO, sampling: { top_p: 0 } }] }, "rollouts[0].sampling.top_p"],
    [{ rollouts: [] }, "rollouts"],
    [{}, "rollouts"],
    [[], "body"],
    [null, "body"],
  ])("%j is refused at its first wrong field", async (body, field) => {
    expect(await refusal(body)).toEqual(["invalid_field", field]);
  });

  test("with a field that nobody knows is refused with its path", async () => {
    const body = { rollouts: [{ ...ECHO, limits: { run_msec: 1 } }] };
    expect(await failureOf(() => parseBody(submitSchema, body))).toEqual({
      code: "unknown_field",
      message: "unknown field: rollouts[0].limits.run_msec",
      boundary: "client",
      retryable: false,
      field: "rollouts[0].limits.run_msec",
      mend: "remove it, or correct its spelling",
    });
    expect(await refusal({ rollouts: [ECHO], wait: 1 })).toEqual(["unknown_field", "wait"]);
    const sampling = { temprature: 1 };
    expect(await refusal({ rollouts: [{ ...ECHO, sampling }] })).toEqual([
      "unknown_field",
      "rollouts[0].sampling.temprature",
    ]);
  });

  test("says in words what is wrong with the field", async () => {
    const { message } = await failureOf(() => parseBody(z.object({ n: z.int() }), { n: "x" }));
    expect(message).toStartWith("n: Invalid input: expected ");
    const missing = await failureOf(() => parseBody(z.object({ n: z.string() }), {}));
    expect(missing.message).toBe("n: is missing");
  });

  test("may have any fields in its instance: they are the task kind's", () => {
    const body = { rollouts: [{ instance: { data_source: "echo", anything: [1] } }] };
    expect(parseBody(submitSchema, body)).toEqual(body);
  });
});

describe("canonical JSON", () => {
  test("is the same for the same value, whatever the order of its keys", () => {
    const one = canonicalJson({ b: [{ y: 1, x: null }], a: { d: "é", c: 2 } });
    const other = canonicalJson({ a: { c: 2, d: "é" }, b: [{ x: null, y: 1 }] });
    expect([one, other]).toEqual(Array(2).fill('{"a":{"c":2,"d":"é"},"b":[{"x":null,"y":1}]}'));
  });

  test("is another for another value, also where only a list's order differs", () => {
    const values = [{ a: 1 }, { a: "1" }, { a: null }, {}, { a: [1, 2] }, { a: [2, 1] }, { A: 1 }];
    expect(new Set(values.map(canonicalJson)).size).toBe(values.length);
  });

  test("leaves out what is undefined, as the wire does", () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe(canonicalJson({ b: 1 }));
  });

  test("keeps keys that JavaScript treats in a special way", () => {
    const text = '{"10":1,"2":2,"__proto__":{"b":1,"a":2}}';
    expect(JSON.parse(canonicalJson(JSON.parse(text)))).toEqual(JSON.parse(text));
    expect(canonicalJson(JSON.parse(text))).toContain('"__proto__":{"a":2,"b":1}');
  });
});

test("a canonical text is the one that digests of earlier versions were made of", () => {
  const byReplacer = (value: unknown) =>
    JSON.stringify(value, (_key, inner) =>
      typeof inner === "object" && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner,
    );
  const random = randomFrom(7);
  const keys = ["b", "a", "10", "9", "é", "Z", "", "__proto__", "toString", "\ud83d\ude00"];
  const value = (depth: number): unknown => {
    const kind = Math.floor(random() * (depth > 3 ? 4 : 6));
    if (kind < 4) return [null, true, random(), "x"][kind];
    const items = Array.from({ length: Math.floor(random() * 4) }, () => value(depth + 1));
    if (kind === 4) return items;
    return Object.fromEntries(items.map((it) => [keys[Math.floor(random() * keys.length)], it]));
  };
  for (let round = 0; round < 2000; round++) {
    const one = value(0);
    expect(canonicalJson(one)).toBe(byReplacer(one));
  }
  expect(canonicalJson({ b: undefined, a: [undefined] })).toBe('{"a":[null]}');
});

test("each dialect of the engine clients can be asked for, and no other", () => {
  const known: DialectName[] = [...DIALECT_NAMES, "none"];
  expect([...DIALECTS].toSorted()).toEqual(known.toSorted());
  expect(() => parseBody(chatSchema, { dialect: "hermes2" })).toThrow("dialect");
});

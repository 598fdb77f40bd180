import { describe, expect, test } from "bun:test";
import { CHECKS } from "../../src/verifiers/instructions/checks.ts";
import { uncheckable } from "../../src/verifiers/instructions/grade.ts";
import { NEEDED } from "../../src/verifiers/instructions/needed-arguments.ts";

const VALUES = { text: "word", texts: ["word"], count: 2, relation: "at least" };
const WRONG: Record<string, unknown[]> = {
  text: [undefined, "", " ", 3, ["word"]],
  texts: [undefined, [], [""], ["word", " "], [3], {}],
  count: [undefined, -1, 1.5, "2", [2]],
  relation: ["at most", "", 2],
};

const whole = (id: string) =>
  Object.fromEntries(
    Object.entries(NEEDED[id] ?? {}).map(([name, shape]) => [name, VALUES[shape]]),
  );

test("each argument that a check reads is needed, and no other", async () => {
  for (const [id, check] of Object.entries(CHECKS)) {
    const read = new Set<string>();
    const args = new Proxy(whole(id), {
      get(all, name) {
        read.add(String(name));
        return all[String(name)];
      },
    });
    for (const text of ["word", "Word. word\n\nword ***", "[word]\n* word 2"])
      await check(text, args);
    if (id === "language:response_language") read.delete("language");
    const declared = Object.keys(NEEDED[id] ?? {});
    expect([id, [...read].filter((name) => !declared.includes(name))]).toEqual([id, []]);
  }
  expect(Object.keys(NEEDED).filter((id) => !Object.hasOwn(CHECKS, id))).toEqual([]);
});

describe("an instruction without what it needs can't be checked", () => {
  test.each(Object.keys(NEEDED))("%s", (id) => {
    const args = whole(id);
    expect(uncheckable({ id, args })).toBeNull();
    for (const [name, shape] of Object.entries(NEEDED[id] ?? {})) {
      for (const value of WRONG[shape] ?? []) {
        const why = uncheckable({ id, args: { ...args, [name]: value } });
        expect([id, name, value, why]).toEqual([
          ...[id, name, value],
          expect.stringContaining(`${id} needs ${name}: `),
        ]);
      }
    }
  });
});

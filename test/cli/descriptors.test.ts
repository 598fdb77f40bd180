import { expect, test } from "bun:test";
import { descriptors } from "../../src/cli/descriptors.ts";

const SLOTS = {
  ...{ init_slots: 32, run_slots: 64, eval_slots: 32 },
  ...{ max_sandboxes_ahead: 16, warm_sandboxes: 4 },
};
const limits = (files: number | string) =>
  `Limit Soft Limit Hard Limit Units\nMax open files            ${files}    4096    files\n`;

test("as many descriptors as the slots may take are enough, and fewer are told with the mend", () => {
  expect(descriptors(SLOTS, limits(1024))).toMatchObject({ status: "ok" });
  expect(descriptors(SLOTS, limits("unlimited"))).toMatchObject({ status: "ok" });
  expect(descriptors({ ...SLOTS, run_slots: 500 }, limits(1024))).toEqual({
    check: "descriptors",
    status: "note",
    detail: "a process may have 1024; the slots may take 3604",
    mend: expect.stringContaining("ulimit -Hn 3604"),
  });
});

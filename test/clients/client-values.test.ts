import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { python } from "../support/python.ts";

const CHECK = resolve(import.meta.dir, "client_values_check.py");
const CLIENT = resolve(import.meta.dir, "../../src/clients");

test("values of odd types mean what they look like or are refused, and a filter that leaves nothing is loud", async () => {
  const { stdout, stderr, exitCode } = await python([CHECK], [CLIENT]);
  expect([exitCode, stderr, stdout]).toEqual([0, "", ""]);
});

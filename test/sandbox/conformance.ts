import { describe, setDefaultTimeout } from "bun:test";
import type { DriverName } from "../../src/sandbox/sandbox.ts";
import { commandTests } from "./conformance/commands.ts";
import { fileTests } from "./conformance/files.ts";
import { lifetimeTests } from "./conformance/lifetime.ts";
import { pythonTests } from "./conformance/python.ts";
import { shellTests } from "./conformance/shell.ts";
import { treeTests } from "./conformance/trees.ts";
import { type Bundle, setup } from "./setup.ts";

export type Setup = () => Promise<Bundle>;

/** What every driver owes its callers. */
export function conformance(driver: DriverName): void {
  // Under load a start takes long; what hangs is still told from what is slow.
  setDefaultTimeout(60_000);
  const start: Setup = () => setup(driver);
  describe(`${driver}: lifetime`, () => lifetimeTests(start));
  describe(`${driver}: commands`, () => commandTests(start));
  describe(`${driver}: files`, () => fileTests(start));
  describe(`${driver}: trees`, () => treeTests(start));
  describe(`${driver}: shell`, () => shellTests(start));
  describe(`${driver}: python`, () => pythonTests(start));
}

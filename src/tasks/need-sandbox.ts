import type { Sandbox } from "../sandbox/sandbox.ts";

/** The sandbox that a kind has planned. That there is none is a bug. */
export function needSandbox(sandbox: Sandbox | null): Sandbox {
  if (sandbox) return sandbox;
  throw new Error("a stage that works in a sandbox came without one");
}

import { describe, expect, test } from "bun:test";
import { conformance } from "./conformance.ts";
import { escapeTests } from "./escape.ts";
import { everydayTests } from "./everyday.ts";
import { isolationTests } from "./isolation.ts";
import { levelTests } from "./levels.ts";
import { failure, NO_ABORT, setup } from "./setup.ts";
import { asUnprivilegedUser } from "./unprivileged.ts";

conformance("bubblewrap");
describe("bubblewrap: isolation", () => isolationTests(() => setup("bubblewrap")));
describe("bubblewrap: escapes", () => escapeTests("bubblewrap"));
describe("bubblewrap: everyday programs", () => everydayTests(() => setup("bubblewrap")));
describe("bubblewrap: levels", () => levelTests("bubblewrap"));

test("a program that is missing, or can't overlay a root, is named with what to do", async () => {
  for (const bwrap of ["/no/such/bwrap", "/bin/true"]) {
    await using bundle = await setup("bubblewrap", { bwrap });
    const error = await failure(bundle.driver.start(bundle.spec(), NO_ABORT));
    expect(error).toMatchObject({ code: "sandbox_unavailable", mend: expect.any(String) });
    expect(error.message).toContain(bwrap);
  }
});

if (process.getuid?.() === 0) {
  test("an unprivileged user's sandboxes pass the same tests", async () => {
    const run = await asUnprivilegedUser("test/sandbox/bubblewrap.test.ts");
    expect({ ...run, output: run.exitCode === 0 ? "" : run.output }).toEqual({
      exitCode: 0,
      output: "",
    });
  }, 300_000);
}

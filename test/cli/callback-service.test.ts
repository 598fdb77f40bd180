import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { callbackService } from "../../src/cli/callback-service.ts";
import { loadConfig } from "../../src/config/config.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";

const LONG = "0123456789abcdef";

test("a secret that is short is refused, from the file and from the environment", async () => {
  using folder = tempDir();
  const file = join(folder.path, "secret");
  const made = (secret: string, fromFile: boolean) => {
    writeFileSync(file, `${secret}\n`);
    chmodSync(file, 0o600);
    const flags = fromFile ? { callback_secret_file: file } : {};
    const env = fromFile ? {} : { ROLLOUTD_CALLBACK_SECRET: secret };
    return callbackService(loadConfig({ env: {}, flags }), env);
  };
  for (const fromFile of [true, false]) {
    const refused = await failureOf(async () => made("short", fromFile));
    expect([refused.code, refused.field]).toEqual(["invalid_field", "callback_secret_file"]);
    expect(refused.mend).toContain("16 characters");
    expect(() => made(LONG, fromFile).check("http://127.0.0.1:1/")).not.toThrow();
  }
});

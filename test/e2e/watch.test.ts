import { expect, test } from "bun:test";
import { BINARY, serve } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

test("watching a service tells of what finishes, until it is interrupted", async () => {
  using data = tempDir();
  await using service = await serve(data.path);
  const watch = Bun.spawn([BINARY, "jobs", "watch", "--server", service.socket], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let out = "";
  const read = (async () => {
    for await (const chunk of watch.stdout) out += Buffer.from(chunk).toString();
  })();
  try {
    await waitFor(() => out.includes("finished 0"), "the first line");
    const instance = { data_source: "echo", reward: 0.25 };
    await fetch(`${service.url}/v1/rollouts`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ rollouts: [{ instance }, { instance }] }),
    });
    await waitFor(() => out.includes("finished 2 (2 scored"), "what finished");
    expect(out).toContain("mean reward 0.250");
  } finally {
    watch.kill("SIGINT");
  }
  expect(await watch.exited).toBe(130);
  await read;
});

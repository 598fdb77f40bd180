import { expect, test } from "bun:test";
import { ApiClient } from "../../src/cli/api-client.ts";
import { checkRows } from "../../src/cli/check-rows.ts";
import { failureOf } from "../support/failure.ts";
import { jsonServer } from "../support/json-server.ts";

const ASKED = [1, 3, 4].map((line) => ({
  place: `rows.jsonl:${line}`,
  request: { id: String(line) },
}));

/** A service that refuses with `message`, or takes everything. */
function service(message: string | null) {
  return jsonServer((_, { rollouts }: { rollouts: unknown[] }, request) => {
    if (new URL(request.url).searchParams.get("dry_run") !== "true") throw new Error("submitted");
    if (message === null) return { rollouts };
    const error = {
      code: "invalid_field",
      message,
      boundary: "client",
      retryable: false,
      mend: "m",
    };
    return Response.json({ error }, { status: 400 });
  });
}

test.each([
  ["rollouts[1]: instance.answer: is missing", "rows.jsonl:3: answer: is missing"],
  ["rollouts[2].instance.data_source: is no text", "rows.jsonl:4: data_source: is no text"],
  ["rollouts[0].agent.max_turns: is too small", "rows.jsonl:1: agent.max_turns: is too small"],
  ["the disk is full", "the disk is full"],
])("a refusal of %j names the row's place", async (message, shown) => {
  using refusing = service(message);
  const failure = await failureOf(() => checkRows(new ApiClient(refusing.url), ASKED));
  expect([failure.message, failure.mend]).toEqual([shown, "m"]);
});

test("rows that are all right are looked at and not submitted", async () => {
  using taking = service(null);
  await checkRows(new ApiClient(taking.url), ASKED);
  expect(taking.asked.map(({ body }) => body)).toEqual([
    { rollouts: ASKED.map(({ request }) => request) },
  ]);
});

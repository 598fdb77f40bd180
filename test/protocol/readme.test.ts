import { expect, test } from "bun:test";
import { join } from "node:path";
import { batchRequestSchema } from "../../src/protocol/batch.ts";
import { groupRequestSchema } from "../../src/protocol/group.ts";
import {
  agentSchema,
  chatSchema,
  limitsSchema,
  rolloutRequestSchema,
} from "../../src/protocol/rollout.ts";

test("every field of a request is explained beside the schemas, and no field that is not there", async () => {
  const text = await Bun.file(join(import.meta.dir, "../../src/protocol/README.md")).text();
  const fields = new Set(
    [rolloutRequestSchema, groupRequestSchema, batchRequestSchema].flatMap((schema) =>
      Object.keys(schema.shape),
    ),
  );
  const explained = new Set(
    text.split("\n").flatMap((line) => /^\| (`[^|]*`) \|/.exec(line)?.[1]?.match(/[a-z_]+/g) ?? []),
  );
  // Instead of an instance a batch has these, and so its text names them.
  explained.add("instances").add("num_samples");
  expect([...explained].sort()).toEqual([...fields].sort());
  for (const schema of [agentSchema, chatSchema, limitsSchema])
    for (const field of Object.keys(schema.shape)) expect(text).toContain(`\`${field}\``);
});

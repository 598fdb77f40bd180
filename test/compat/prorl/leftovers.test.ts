import { expect, test } from "bun:test";
import { ProrlGateway, type ProrlParts } from "../../../src/compat/prorl/gateway.ts";
import { ECHO, setup } from "../../server/setup.ts";

test("what a predecessor left of this API ends, and no rollout of another API that has such a label", async () => {
  await using t = setup({ held: true });
  const labels = { api: "prorl" };
  const rollouts = ["prorl-1", "mine"].map((id) => ({ id, ...ECHO, labels }));
  expect((await t.send("POST", "/v1/rollouts", { rollouts })).status).toBe(201);
  const settings = { timeoutMs: 1, disconnectGraceMs: 1, keepMs: 1, inputIds: false };
  const { store, scheduler } = t;
  await new ProrlGateway({ store, scheduler, settings } as unknown as ProrlParts).endLeftovers();
  const endings = ["prorl-1", "mine"].map((id) => store.jobById(id)?.ending ?? null);
  expect(endings).toEqual(["cancel", null]);
});

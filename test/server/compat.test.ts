import { expect, test } from "bun:test";
import { waitFor } from "../support/wait-for.ts";
import { ECHO, setup } from "./setup.ts";

type Setup = ReturnType<typeof setup>;

const GYM = { data_source: "echo", responses_create_params: { input: "Say something." } };
const STOPPED = { detail: "Server is not running. Please start the server first." };

/** ProRL's side, started, with an engine that is never called. */
async function started(options: Parameters<typeof setup>[0] = {}) {
  const t = setup({ ...options, compat: true });
  await t.send("POST", "/add_llm_server", { address: "http://127.0.0.1:1" });
  await t.send("POST", "/start");
  return t;
}

const endAtCancel = (t: Setup) => {
  for (const thread of t.threads) {
    thread.onCancel = ({ jobId }) => {
      for (const start of thread.starts()) if (start.jobId === jobId) thread.finish(start);
    };
  }
};

const unfinished = ({ store }: Setup) =>
  store.list({ states: ["pending", "active"], order: "submitted", after: 0, limit: 500 }).rows
    .length;

test("what comes while ProRL's side stops is refused, and not left running", async () => {
  await using t = await started({ held: true });
  endAtCancel(t);
  const bodies = Array.from({ length: 5 }, () => t.send("POST", "/process", ECHO));
  const [stopped, ...answers] = await Promise.all([t.send("POST", "/stop"), ...bodies]);
  expect(stopped.status).toBe(200);
  for (const { status, body } of answers) {
    if (status !== 200) expect([status, body]).toEqual([503, STOPPED]);
    else expect(body.critical_error).toBe("cancelled");
  }
  expect(unfinished(t)).toBe(0);
});

test("all who wait for a call are told that it was not taken on, and stop does not wait for it", async () => {
  await using t = await started({ held: true });
  endAtCancel(t);
  const many = Array.from({ length: 60 }, () => ECHO);
  for (let i = 0; i < 2; i++) await t.send("POST", "/v1/rollouts", { rollouts: many });
  await t.send("POST", "/v1/rollouts", { rollouts: many.slice(0, 40) });
  const call = () => t.send("POST", "/process", { ...ECHO, job_id: "mine" });
  const refused = await Promise.all([call(), call(), call()]);
  expect(refused.map(({ status }) => status)).toEqual([429, 429, 429]);
  expect((await t.send("POST", "/stop")).status).toBe(200);
});

test("calls that wait count with all others that do", async () => {
  await using t = await started({ held: true, maxWaiting: 1 });
  endAtCancel(t);
  const waiting = t.send("POST", "/process", ECHO);
  await waitFor(() => unfinished(t) === 1, "the first call");
  expect((await t.send("POST", "/process", ECHO)).status).toBe(429);
  const gym = await t.send("POST", "/run", GYM);
  expect([gym.status, gym.body.error.code]).toEqual([429, "too_many_waiting"]);
  expect(unfinished(t)).toBe(1);
  await t.send("POST", "/stop");
  expect((await waiting).body.cancelled).toBe(true);
});

test("an engine's key is shown nowhere", async () => {
  await using t = await started();
  const sampling_params = { api_key: "sk-hidden", aws_secret_access_key: "aws-hidden" };
  const { body } = await t.send("POST", "/process", { ...ECHO, sampling_params, job_id: "k" });
  const shown = [body];
  for (const path of ["", `/${body.job_id}`]) {
    shown.push((await t.send("GET", `/v1/rollouts${path}`)).body);
  }
  expect(body.error).toBeNull();
  expect(JSON.stringify(shown)).not.toContain("hidden");
});

import { expect, test } from "bun:test";
import {
  environment,
  mathRow,
  type Service,
  sandboxFlags,
  serve,
  simulate,
  turn,
} from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";

const cell = (code: string) => turn("execute_ipython_cell", { code });

/** Prints another line each time. */
const FLEETING =
  "import tempfile, time, uuid; print(tempfile.mkdtemp(), time.time(), uuid.uuid4(), object())";

/** What each turn prints depends on what the session has kept of those before; half of the rollouts are right. */
const TURNS = [cell("x = 20"), cell(`x += 1; print(x); ${FLEETING}`), cell("print(x * 2)")];
const SCRIPTS = [
  {
    match: "paused",
    variants: ["42", "0"].map((answer) => [
      ...TURNS,
      turn("finish", { message: `\\boxed{${answer}}` }),
    ]),
  },
];

async function call(service: Service, method: string, path: string, body?: unknown) {
  const init =
    body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const url = `http://localhost${path}`;
  const response = await fetch(url, { unix: service.socket, method, ...init });
  // biome-ignore lint/suspicious/noExplicitAny: what the assertions look at is what is tested.
  return (await response.json()) as any;
}

const PLAN = {
  ...{ num_samples: 4, goal: { groups: 1 }, sampling: { seed: 0 } },
  ...{ max_turns_per_batch: 2, unfinished: "keep" },
};

/** A batch in which each rollout takes its first two turns, and waits. */
async function begin(service: Service, series: string): Promise<void> {
  const instances = [mathRow(`paused: ${series}`, "42")];
  await call(service, "POST", "/v1/batches", { ...PLAN, id: `${series}1`, series, instances });
  const over = await call(service, "GET", `/v1/batches/${series}1?wait_ms=60000`);
  expect(over).toMatchObject({ state: "exhausted", groups: { running: 1 } });
}

/** The next batch of the series, in which they come to their end. Returns what is of interest of each. */
async function finish(service: Service, series: string) {
  const id = `${series}2`;
  await call(service, "POST", "/v1/batches", { ...PLAN, id, series });
  const done = await call(service, "GET", `/v1/batches/${id}?wait_ms=60000`);
  expect(done).toMatchObject({ state: "complete", error: null });
  const { groups } = await call(service, "GET", `/v1/batches/${id}/groups?trajectories=true`);
  expect(groups[0].rewards.toSorted()).toEqual([0, 0, 1, 1]);
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  return groups[0].members.map(({ rollout, trajectory }: any) => ({
    attempt: rollout.attempt,
    // biome-ignore lint/suspicious/noExplicitAny: see above.
    versions: trajectory.turns.map((it: any) => it.weight_version),
    printed: trajectory.messages
      // biome-ignore lint/suspicious/noExplicitAny: see above.
      .filter(({ role }: any) => role === "tool")
      // biome-ignore lint/suspicious/noExplicitAny: see above.
      .map(({ content }: any) => content.split("\n")[0]),
  }));
}

test("a paused rollout goes on in its session under new weights, and after kill -9 from its record", async () => {
  using dir = tempDir();
  const data = dir.file("data");
  await using engine = await simulate(dir.path, SCRIPTS);
  const driver = ["--driver", "bubblewrap", "--bwrap", environment("ROLLOUTD_BWRAP")];
  const flags = [...sandboxFlags(), ...driver, "--backend", engine.url, "--run-slots", "4"];
  let service = await serve(data, flags);
  await call(service, "POST", "/v1/weights", { version: "1" });
  await begin(service, "kept");
  await begin(service, "killed");
  await call(service, "POST", "/v1/weights", { version: "2" });
  const printed = ["[Code executed successfully with no output]", "21", "42"];
  const versions = ["1", "1", "2", "2"];
  expect(await finish(service, "kept")).toEqual(Array(4).fill({ attempt: 1, versions, printed }));
  service.signal("SIGKILL");
  await service.exited;
  service = await serve(data, flags);
  expect(await finish(service, "killed")).toEqual(Array(4).fill({ attempt: 2, versions, printed }));
  const { unfinished } = await call(service, "GET", "/v1/status");
  expect(unfinished).toBe(0);
  await service[Symbol.asyncDispose]();
}, 120_000);

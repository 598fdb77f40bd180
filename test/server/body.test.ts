import { expect, test } from "bun:test";
import { ECHO, MAX_BODY_BYTES, setup } from "./setup.ts";

const BODIES_AT_ONCE = 16;
const JSON_TYPE = { "content-type": "application/json" };

test("bodies that come slowly take bounded memory together, whether or not they say their size", async () => {
  await using t = setup();
  const post = async (body: ReadableStream, headers = {}) => {
    const init = { method: "POST", body, headers: { ...JSON_TYPE, ...headers } };
    const response = await t.app.request("/v1/rollouts", init, t.env);
    return [response.status, response.headers.get("retry-after") !== null];
  };
  const slow = () => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    return { readable, writer: writable.getWriter() };
  };
  const declared = { "content-length": `${MAX_BODY_BYTES}` };
  const silent = Array.from({ length: BODIES_AT_ONCE - 1 }, slow);
  const answers = silent.map(({ readable }) => post(readable, declared));
  const streamed = slow();
  answers.push(post(streamed.readable));
  await streamed.writer.write(Buffer.alloc(MAX_BODY_BYTES - 500, " "));
  expect(await t.send("POST", "/v1/rollouts", ECHO)).toMatchObject({ status: 201 });
  const more = slow();
  const refused = post(more.readable);
  more.writer.write(Buffer.alloc(1000, " ")).catch(() => {});
  expect(await refused).toEqual([429, true]);
  expect(await post(slow().readable, declared)).toEqual([429, true]);
  for (const { writer } of [...silent, streamed]) await writer.close();
  expect(await Promise.all(answers)).toEqual(Array(BODIES_AT_ONCE).fill([400, false]));
  const whole = JSON.stringify(ECHO).padEnd(MAX_BODY_BYTES);
  expect(await t.send("POST", "/v1/rollouts", whole)).toMatchObject({ status: 201 });
});

import { describe, expect, test } from "bun:test";
import {
  ERRORS,
  type ErrorBody,
  type ErrorCode,
  fromErrorBody,
  ServiceError,
  toErrorBody,
} from "../src/errors.ts";

describe("an error as plain data", () => {
  test("says who has to act and whether it is worth another try, by its code", () => {
    const error = new ServiceError("queue_full", "full", { cause: new Error("secret") });
    expect(toErrorBody(error)).toEqual({
      code: "queue_full",
      message: "full",
      boundary: "service",
      retryable: true,
    });
    expect(error.status).toBe(429);
  });

  test("names the field and the mend where there are any", () => {
    const options = { field: "rollouts[0].id", mend: "choose another" };
    expect(toErrorBody(new ServiceError("id_conflict", "taken", options))).toEqual({
      code: "id_conflict",
      message: "taken",
      boundary: "client",
      retryable: false,
      ...options,
    });
  });

  test("of anything else that was thrown is a bug with its message", () => {
    const bug = { code: "internal", boundary: "service", retryable: false } as const;
    expect([new TypeError("x is undefined"), "text", undefined].map(toErrorBody)).toEqual([
      { ...bug, message: "TypeError: x is undefined" },
      { ...bug, message: "text" },
      { ...bug, message: "undefined" },
    ]);
  });

  test("of what the kernel has none left just now is worth another try, and says what to raise", () => {
    const error = Object.assign(new Error("too many open files"), { code: "EMFILE" });
    const body = toErrorBody(error);
    expect(body).toMatchObject({ code: "node_exhausted", boundary: "service", retryable: true });
    expect(body.mend).toContain("ulimit -n");
    expect(toErrorBody(Object.assign(error, { code: "EISDIR" })).code).toBe("internal");
  });

  test("is the same after it crossed a thread, whatever its code", () => {
    const codes = Object.keys(ERRORS) as ErrorCode[];
    const bodies = codes.map(
      (code): ErrorBody => new ServiceError(code, "why", { field: "f", mend: "m" }).toBody(),
    );
    expect(bodies.map((body) => fromErrorBody(structuredClone(body)).toBody())).toEqual(bodies);
  });
});

test("a refusal of the request is never worth another try, and is a 4xx or no HTTP matter", () => {
  const rows = Object.values(ERRORS).filter(({ boundary }) => boundary === "client");
  expect(rows.filter(({ retryable }) => retryable)).toEqual([]);
  expect(rows.filter(({ status }) => status !== 200 && (status < 400 || status > 499))).toEqual([]);
});

import { describe, expect, test } from "bun:test";
import { readRows } from "../../src/cli/rows.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Reads `text` as a file of rows. Its path is replaced by FILE, so that messages can be compared. */
async function refusal(text: string) {
  using dir = tempDir();
  await Bun.write(dir.file("rows.jsonl"), text);
  const { code, message, mend } = await failureOf(() => readRows(dir.file("rows.jsonl")));
  return [code, message.replace(dir.file("rows.jsonl"), "FILE"), mend];
}

describe("a file of rows", () => {
  test("has one JSON object a line; empty lines and a last line without an end are fine", async () => {
    using dir = tempDir();
    await Bun.write(
      dir.file("rows.jsonl"),
      '{"data_source":"echo","reward":1}\n\n  \r\n{"data_source":"math","x":"\\n"}',
    );
    const path = dir.file("rows.jsonl");
    expect(readRows(path)).toEqual([
      { row: { data_source: "echo", reward: 1 }, place: `${path}:1` },
      { row: { data_source: "math", x: "\n" }, place: `${path}:4` },
    ]);
  });

  test("names the line that is no JSON", async () => {
    const [code, message] = await refusal('{"data_source":"echo"}\n\n{"data_source":\n');
    expect([code, message]).toEqual([
      "bad_json",
      expect.stringMatching(/^FILE:3 is not valid JSON: ./),
    ]);
  });

  test.each(['{"data-source":"echo"}', '{"data_source":null}'])(
    "names the line that has no data_source: %s",
    async (line) => {
      expect(await refusal(`{"data_source":"echo"}\n${line}\n`)).toEqual([
        "invalid_field",
        "FILE:2 has no data_source",
        'add it, for example "data_source": "deepscaler", or name it with --data-source',
      ]);
    },
  );

  test.each(["[1]", "5", "null", '"echo"'])("names the line that is no row: %s", async (line) => {
    expect(await refusal(`{"data_source":"echo"}\n${line}\n`)).toEqual([
      "invalid_field",
      "FILE:2 is no row",
      "a row is a JSON object",
    ]);
  });

  test("may be one JSON list, and rows that name no data_source get the one that is given", async () => {
    using dir = tempDir();
    const rows = [{ a: 1 }, { a: 2, data_source: null }, { data_source: "echo" }];
    await Bun.write(dir.file("rows.json"), `\n${JSON.stringify(rows, null, 2)}`);
    expect(readRows(dir.file("rows.json"), "math").map(({ row }) => row)).toEqual([
      { a: 1, data_source: "math" },
      { a: 2, data_source: "math" },
      { data_source: "echo" },
    ]);
    expect((await refusal(`[{"data_source":"echo"},7]`))[1]).toBe("FILE[1] is no row");
    expect((await refusal("[7"))[1]).toStartWith("FILE is not valid JSON: ");
  });

  test("without a row is refused", async () => {
    expect(await refusal(" \n\n")).toEqual([
      "invalid_field",
      "FILE has no rows",
      "put one JSON row a line",
    ]);
  });

  test("that can't be read is refused with the reason", async () => {
    const { code, message } = await failureOf(() => readRows("/nonexistent/rows.jsonl"));
    expect([code, message]).toEqual([
      "invalid_field",
      "/nonexistent/rows.jsonl can't be read: there is no such file",
    ]);
  });
});

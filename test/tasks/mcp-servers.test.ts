import { expect, test } from "bun:test";
import { mcpSettings } from "../../src/cli/mcp-settings.ts";
import { mcpServersFor } from "../../src/tasks/mcp-servers.ts";
import { failureOf } from "../support/failure.ts";
import { TASK_SETTINGS } from "../support/task-context.ts";
import { tempDir } from "../support/temp-dir.ts";

const FILE = {
  mcpServers: {
    search: {
      command: "search-server",
      args: ["--stdio"],
      env: { KEY: "k" },
      task_kinds: ["stem"],
    },
    remote: { url: "https://tools.example/mcp", headers: { authorization: "Bearer t" } },
  },
};
const SEARCH = { name: "search", command: ["search-server", "--stdio"], env: { KEY: "k" } };
const REMOTE = {
  name: "remote",
  url: "https://tools.example/mcp",
  headers: { authorization: "Bearer t" },
};

async function settingsOf(content: unknown = FILE) {
  using dir = tempDir();
  const path = dir.file("mcp.json");
  await Bun.write(path, typeof content === "string" ? content : JSON.stringify(content));
  const http = { ...TASK_SETTINGS.http, allowedUrls: ["http://127.0.0.1:9"] };
  return { ...TASK_SETTINGS, http, mcp: mcpSettings(path) };
}

test("a rollout's servers win over its row's, and those over the ones of its kind", async () => {
  const settings = await settingsOf();
  const row = { mcp_servers: ["remote"] };
  expect(mcpServersFor("stem", {}, undefined, settings)).toEqual([SEARCH]);
  expect(mcpServersFor("math", {}, undefined, settings)).toEqual([]);
  expect(mcpServersFor("stem", row, undefined, settings)).toEqual([REMOTE]);
  expect(mcpServersFor("stem", row, ["search", "remote"], settings)).toEqual([SEARCH, REMOTE]);
  expect(mcpServersFor("stem", row, [], settings)).toEqual([]);
  const own = { name: "mine", url: "http://127.0.0.1:9/mcp" };
  expect(mcpServersFor("math", { mcp_servers: [own] }, undefined, settings)).toEqual([
    { ...own, headers: {} },
  ]);
});

test.each([
  [["nobody"]],
  [["toString"]],
  [[{ name: "x", url: "http://127.0.0.1:10/" }]],
  [[{ name: "x", command: ["sh", "-c", "id"] }]],
  ["search"],
])(
  "a row may name no program, nothing unknown and no address that is not allowed: %j",
  async (mcp_servers) => {
    const settings = await settingsOf();
    const failure = await failureOf(() =>
      mcpServersFor("math", { mcp_servers }, undefined, settings),
    );
    expect([failure.code, failure.field]).toEqual(["invalid_field", "instance.mcp_servers"]);
  },
);

test.each([
  "{",
  {},
  { mcpServers: { x: {} } },
  { mcpServers: { x: { url: "file:///x" } } },
  { mcpServers: { "a b": { command: "x" } } },
])("a file that can't be read is refused: %j", async (content) => {
  const failure = await failureOf(() => settingsOf(content));
  expect([failure.code, failure.field]).toEqual(["invalid_field", "mcp_servers"]);
});

import { describe, expect, test } from "bun:test";
import { cutAtNewlines } from "../../src/agent/bash-statements.ts";

describe("a command is cut after each line that leaves nothing open", () => {
  const cases: [what: string, command: string, pieces: string[]][] = [
    ["one line", "ls -l", ["ls -l"]],
    ["nothing", "", []],
    ["two lines", "ls\npwd", ["ls", "pwd"]],
    ["a chain", "ls; pwd && true", ["ls; pwd && true"]],
    ["single quotes", "echo 'a\nb' c\nls", ["echo 'a\nb' c", "ls"]],
    ["double quotes", 'echo "a\n\\"b\nc"\nls', ['echo "a\n\\"b\nc"', "ls"]],
    ["a quote with escapes", "echo $'a\\'\nb'\nls", ["echo $'a\\'\nb'", "ls"]],
    ["a backslash", "ls \\\n  -l\npwd", ["ls \\\n  -l", "pwd"]],
    ["a quote behind a backslash", "echo it\\'s\npwd", ["echo it\\'s", "pwd"]],
    ["a here-document", "cat <<END\n'\nEND\nls", ["cat <<END\n'\nEND", "ls"]],
    ["a quoted delimiter", "cat << 'E F' >x\n\"\nE F\nls", ["cat << 'E F' >x\n\"\nE F", "ls"]],
    ["tabs before it", "cat <<-END\n\tx'\n\tEND\nls", ["cat <<-END\n\tx'\n\tEND", "ls"]],
    ["two here-documents", "cat <<A <<B\n'\nA\n'\nB\nls", ["cat <<A <<B\n'\nA\n'\nB", "ls"]],
    ["a here-string", "cat <<<END\nls", ["cat <<<END", "ls"]],
    ["no here-document", "echo $((1<<2))\nls", ["echo $((1<<2))", "ls"]],
    ["a comment with a quote", "ls # it's\npwd", ["ls # it's", "pwd"]],
    ["a number sign in a word", "echo a#'\n'\npwd", ["echo a#'\n'", "pwd"]],
    [
      "comments and blank lines",
      "\n# a\n\nls\n\n# b\npwd\n# c\n",
      ["\n# a\n\nls", "\n# b\npwd\n# c\n"],
    ],
    ["an open quote", "echo 'a\nls", ["echo 'a\nls"]],
    ["an open here-document, for bash to join", "cat <<END\nls", ["cat <<END", "ls"]],
  ];
  test.each(cases)("%s", (_what, command, pieces) => {
    expect(cutAtNewlines(command)).toEqual(pieces);
  });

  test("a megabyte of here-document is one piece, soon", () => {
    const startMs = performance.now();
    expect(cutAtNewlines(`cat <<'END'\n${"it's\n".repeat(200_000)}END`).length).toBe(1);
    expect(performance.now() - startMs).toBeLessThan(1000);
  });

  test.each(["cat <<A\n", "cat <<A <<B\n"])("so are many that nothing ends: %j", (line) => {
    const startMs = performance.now();
    const pieces = cutAtNewlines(`${line.repeat(40_000)}A\n`);
    expect(pieces.length).toBe(line.includes("B") ? 40_001 : 1);
    expect(performance.now() - startMs).toBeLessThan(1000);
  });
});

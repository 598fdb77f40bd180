import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { DRIVERS, sandboxed } from "./sandboxed.ts";

setDefaultTimeout(60_000);

const REVIEW =
  "Review the changes and make sure they are as expected. Edit the file again if necessary.";

describe.each(DRIVERS)("%s", (driver) => {
  /** An editor, and a folder of the sandbox to work in. */
  async function setup() {
    const tool = await sandboxed(driver, "str_replace_editor");
    const exec = async (script: string) =>
      (await tool.sandbox.exec(["sh", "-c", script], { timeoutMs: 20_000, maxOutputBytes: 1e6 }))
        .stdout;
    const dir = (await exec("mkdir work && cd work && pwd")).trim();
    const path = `${dir}/a.py`;
    return {
      ...tool,
      exec,
      dir,
      path,
      edit: (command: string, args: Record<string, unknown> = {}) =>
        tool.call({ command, path, ...args }),
      text: async () => Buffer.from(await tool.sandbox.readFile(path, 1e6)).toString(),
    };
  }

  test("a file is created once, with the folders it needs", async () => {
    await using it = await setup();
    const path = `${it.dir}/deep/er/b.txt`;
    const created = { command: "create", path, file_text: "one\n" };
    expect(await it.call(created)).toBe(`File created successfully at: ${path}`);
    expect(await it.call(created)).toBe(
      `ERROR:\nInvalid \`path\` parameter: ${path}. File already exists at: ${path}. Cannot overwrite files using command \`create\`.`,
    );
  });

  test("a file is shown with line numbers, whole or in part", async () => {
    await using it = await setup();
    await it.edit("create", { file_text: "one\ntwo\nthree\n" });
    const intro = `Here's the result of running \`cat -n\` on ${it.path}:\n`;
    expect(await it.edit("view")).toBe(
      `${intro}     1\tone\n     2\ttwo\n     3\tthree\n     4\t\n`,
    );
    expect(await it.edit("view", { view_range: [2, -1] })).toBe(
      `${intro}     2\ttwo\n     3\tthree\n`,
    );
    expect(await it.edit("view", { view_range: "[3, 9]" })).toBe(
      `${intro}     3\tthree\n\nNOTE: We only show up to 3 since there's only 3 lines in this file\n`,
    );
    const wrong = "ERROR:\nInvalid `view_range` parameter: ";
    expect(await it.edit("view", { view_range: [0, 2] })).toBe(
      `${wrong}[0, 2]. Its first element \`0\` should be within the range of lines of the file: [1, 3].`,
    );
    expect(await it.edit("view", { view_range: [3, 2] })).toStartWith(`${wrong}[3, 2]. Its second`);
    expect(await it.edit("view", { view_range: [1] })).toStartWith(`${wrong}[1]. It should be a`);
  });

  test("a folder is shown two levels deep, without what is hidden", async () => {
    await using it = await setup();
    await it.exec("cd work && mkdir -p b/c/d .git/x && touch a 'b/two words' b/.h b/c/no .e");
    expect(await it.call({ command: "view", path: it.dir })).toBe(
      [
        `Here's the files and directories up to 2 levels deep in ${it.dir}, excluding hidden items:`,
        ...["/", "/a", "/b/", "/b/c/", "/b/two words"].map((name) => `${it.dir}${name}`),
        `\n2 hidden files/directories in this directory are excluded. You can use 'ls -la ${it.dir}' to see them.`,
      ].join("\n"),
    );
    expect(await it.call({ command: "view", path: it.dir, view_range: [1, 2] })).toContain(
      "not allowed when `path` points to a directory",
    );
    expect(await it.call({ command: "undo_edit", path: it.dir })).toContain(
      "is a directory and only the `view` command can be used on directories.",
    );
  });

  test("a unique text is replaced, and the lines around it are shown", async () => {
    await using it = await setup();
    const lines = Array.from({ length: 12 }, (_, index) => `line ${index + 1}`);
    await it.edit("create", { file_text: `${lines.join("\n")}\n` });
    await it.exec("chmod 751 work/a.py");
    expect(await it.edit("str_replace", { old_str: "line 6\n", new_str: "a $& b\nc\n" })).toBe(
      `The file ${it.path} has been edited. Here's the result of running \`cat -n\` on a snippet of ${it.path}:\n` +
        "     3\tline 3\n     4\tline 4\n     5\tline 5\n     6\ta $& b\n     7\tc\n     8\tline 7\n     9\tline 8\n    10\tline 9\n    11\tline 10\n    12\tline 11\n" +
        REVIEW,
    );
    expect(await it.text()).toStartWith(
      "line 1\nline 2\nline 3\nline 4\nline 5\na $& b\nc\nline 7\n",
    );
    expect((await it.exec("stat -c %a work/a.py")).trim()).toBe("751");
  });

  test("a text that is not there, or more than once, is not replaced", async () => {
    await using it = await setup();
    const file_text = "def f():\n    return 1\n\ndef g():\n    return 1\n";
    await it.edit("create", { file_text });
    expect(await it.edit("str_replace", { old_str: "    return 1", new_str: "x" })).toBe(
      "ERROR:\nNo replacement was performed. Multiple occurrences of old_str `    return 1` in lines [2, 5]. Please ensure it is unique.",
    );
    expect(await it.edit("str_replace", { old_str: "nothing" })).toBe(
      `ERROR:\nNo replacement was performed, old_str \`nothing\` did not appear verbatim in ${it.path}.`,
    );
    const shifted = await it.edit("str_replace", { old_str: "def g():\n  return 1", new_str: "" });
    expect(shifted).toEndWith(
      `verbatim in ${it.path}. It does, but for white space, in lines [4].`,
    );
    expect(await it.edit("str_replace", { old_str: "f", new_str: "f" })).toContain(
      "must be different",
    );
    expect(await it.edit("str_replace", { old_str: "", new_str: "f" })).toContain(
      "must not be empty",
    );
    expect(await it.text()).toBe(file_text);
  });

  test("lines are inserted after a line, also where the last one has no end", async () => {
    await using it = await setup();
    await it.edit("create", { file_text: "one\ntwo" });
    expect(await it.edit("insert", { insert_line: 0, new_str: "zero" })).toContain(
      "on a snippet of the edited file:\n     1\tzero\n     2\tone\n     3\ttwo\nReview",
    );
    await it.edit("insert", { insert_line: "3", new_str: "three\nfour" });
    expect(await it.text()).toBe("zero\none\ntwo\nthree\nfour\n");
    expect(await it.edit("insert", { insert_line: 9, new_str: "x" })).toBe(
      "ERROR:\nInvalid `insert_line` parameter: 9. It should be within the range of allowed values: [0, 5]",
    );
  });

  test("edits are undone one by one", async () => {
    await using it = await setup();
    await it.edit("create", { file_text: "1\n" });
    await it.edit("str_replace", { old_str: "1", new_str: "2" });
    await it.edit("insert", { insert_line: 1, new_str: "3" });
    expect(await it.edit("undo_edit")).toBe(
      `Last edit to ${it.path} undone successfully. Here's the result of running \`cat -n\` on ${it.path}:\n     1\t2\n     2\t\n`,
    );
    await it.edit("undo_edit");
    expect(await it.text()).toBe("1\n");
    expect(await it.edit("undo_edit")).toBe(`ERROR:\nNo edit history found for ${it.path}.`);
  });

  test("a long file is clipped, and the answer says how to see more", async () => {
    await using it = await setup();
    await it.exec("seq 1 100000 > work/a.py");
    const shown = await it.edit("view");
    expect(shown).toContain("\n  1000\t1000\n");
    const ending = /for\.<\/NOTE>\n\[\.\.\. (\d+) characters cut \.\.\.\]\n$/;
    expect(shown).toMatch(ending);
    // Of each line a number in six columns and the line itself, with a tab and a newline.
    expect(Number(shown.match(ending)?.[1])).toBeGreaterThan(1_200_000);
    expect(shown.length).toBeLessThan(17_000);
    expect(await it.edit("view", { view_range: [99_999, -1] })).toEndWith(
      " 99999\t99999\n100000\t100000\n",
    );
  });

  test("what is no text file of a bounded size is refused, and nothing hangs", async () => {
    await using it = await setup();
    await it.exec(
      "cd work && printf 'a\\0b' >nul; printf '\\377' >latin; mkfifo fifo; truncate -s 11M big",
    );
    const view = (name: string) => it.call({ command: "view", path: `${it.dir}/${name}` });
    expect(await view("nul")).toContain("File appears to be binary");
    expect(await view("latin")).toContain("only supports UTF-8 encoding files");
    expect(await view("big")).toContain("File is too large");
    expect(await view("fifo")).toContain("not a regular file");
    expect(await view("none")).toBe(
      `ERROR:\nInvalid \`path\` parameter: ${it.dir}/none. The path ${it.dir}/none does not exist. Please provide a valid path.`,
    );
  });

  test("wrong arguments are told to the model", async () => {
    await using it = await setup();
    const calls: [Record<string, unknown>, string][] = [
      [
        { command: "view", path: "a.py" },
        "ERROR:\nInvalid `path` parameter: a.py. The path should be an absolute path, starting with `/`.",
      ],
      [
        { command: "create", path: "/x" },
        "ERROR:\nParameter `file_text` is required for command: create.",
      ],
      [
        { command: "insert", path: "/x", insert_line: 1 },
        "ERROR:\nParameter `new_str` is required for command: insert.",
      ],
      [
        { command: "open", path: "/x" },
        "ERROR:\nUnrecognized command open. The allowed commands for the str_replace_editor tool are: view, create, str_replace, insert, undo_edit",
      ],
      [
        { command: "view", path: "/x", lines: 3 },
        'ERROR: str_replace_editor has no argument "lines".',
      ],
      [{ command: "view" }, 'ERROR: the argument "path" must be a string, but it is missing.'],
    ];
    for (const [args, answer] of calls) expect(await it.call(args)).toBe(answer);
  });
});

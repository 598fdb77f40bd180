import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { INSIDE } from "../../src/sandbox/environment.ts";
import { waitFor } from "../support/wait-for.ts";
import { EXEC, failure, setup } from "./setup.ts";

setDefaultTimeout(60_000);

test("pictures come as data, the first few and none that is large", async () => {
  await using bundle = await setup("apptainer");
  const python = await (await bundle.open()).python({ startTimeoutMs: 20_000 });
  const code = `from IPython.display import display, Image
class Picture:
    def __init__(self, size): self.size = size
    def _repr_png_(self): return b'png' * self.size
display({'image/png': 'cG5n', 'text/plain': 'a figure'}, raw=True)
display(Picture(1_000_000))
Picture(1)`;
  const { images, output, ok } = await python.run(code, EXEC);
  expect({ images, ok }).toEqual({
    images: Array(2).fill("data:image/png;base64,cG5n"),
    ok: true,
  });
  expect(output).toStartWith("a figure\n<__main__.Picture");
  const many = "for _ in range(20): display({'image/png': 'cG5n', 'text/plain': ''}, raw=True)";
  expect((await python.run(many, EXEC)).images.length).toBe(8);
  expect((await python.run("1", EXEC)).images).toEqual([]);
});

test("a folder or interpreter that is no path is not told", async () => {
  await using bundle = await setup("bubblewrap");
  const python = await (await bundle.open()).python({ startTimeoutMs: 20_000 });
  const code = "import os, sys; os.getcwd = lambda: 'x' * 500_000; sys.executable = 'y' * 400_000";
  const { ok, cwd, python: interpreter } = await python.run(code, EXEC);
  expect([ok, cwd, interpreter]).toEqual([true, "", ""]);
});

test("IPython's own syntax means what it means there", async () => {
  await using bundle = await setup("bubblewrap");
  const python = await (await bundle.open()).python({ startTimeoutMs: 20_000 });
  const run = async (code: string) => (await python.run(code, EXEC)).output;
  expect(await run("made = !echo made\nmade")).toBe("['made']\n");
  expect(await run("%cd -q /usr\n!pwd")).toBe("/usr\n");
  expect(await run("if True:\n    !pwd")).toBe("/usr\n");
  expect(await run("pwd")).toBe("'/usr'\n");
  expect(await run("/abs -3")).toBe("3\n");
  expect(await run("x = 7\nx?")).toContain("Type:");
  expect(await run("x % 4, x != 7")).toBe("(3, False)\n");
  expect(await run("(_, In[-2])")).toBe("((3, False), 'x % 4, x != 7')\n");
});

test("an image without Python, or without bash, is named as the reason", async () => {
  await using bundle = await setup("bubblewrap");
  const sandbox = await bundle.open();
  await sandbox.exec(["sh", "-c", "rm -f /usr/bin/python3* /usr/local/bin/python3*"], EXEC);
  expect(await failure(sandbox.python({ startTimeoutMs: 20_000 }))).toMatchObject({
    code: "image_invalid",
    message: "cannot start python3 (ENOENT): the image must have one",
  });
  await sandbox.exec(["rm", "-f", "/bin/bash", "/usr/bin/bash"], EXEC);
  expect(await failure(sandbox.shell())).toMatchObject({
    code: "image_invalid",
    message: "cannot start bash (ENOENT): the image must have one",
  });
});

test("who listens in the driver's place, accepts and says nothing, does not keep a session from its start", async () => {
  await using bundle = await setup("bubblewrap");
  const sandbox = await bundle.open();
  const silent = `import socket
listener = socket.socket(socket.AF_UNIX); listener.bind("${INSIDE.io}/py.sock"); listener.listen(100)
accepted = []
while True: accepted.append(listener.accept())`;
  sandbox.exec(["python3", "-c", silent], { ...EXEC, timeoutMs: 60_000 }).catch(() => {});
  const listens = () => existsSync(join(sandbox.handle.dir, "io", "py.sock"));
  await waitFor(listens, "it to listen");
  const python = await sandbox.python({ startTimeoutMs: 30_000 });
  expect(await python.run("1 + 1", EXEC)).toMatchObject({ output: "2\n" });
});

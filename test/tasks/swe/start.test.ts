import { afterAll, beforeAll, expect, test } from "bun:test";
import { attachSandbox } from "../../../src/sandbox/attach.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { swe } from "../../../src/tasks/swe/swe.ts";
import type { Verdict } from "../../../src/verifiers/verdict.ts";
import { type Bundle, EXEC, NO_ABORT, setup } from "../../sandbox/setup.ts";
import { evalContext, runContext } from "../../support/task-context.ts";
import { SOLVE, type Tally, tallyImage } from "./tally.ts";

let tally: Tally;
let bundle: Bundle;

beforeAll(async () => {
  tally = await tallyImage();
  bundle = await setup("bubblewrap");
});

afterAll(async () => {
  await bundle[Symbol.asyncDispose]();
  await tally[Symbol.asyncDispose]();
});

const AT = { ...EXEC, cwd: "/testbed" };

/** A sandbox of an image in which `change` was done when it was made. */
async function imaged(change: string): Promise<Sandbox> {
  const sandbox = await attachSandbox(await bundle.start({ image: tally.image }));
  const { exitCode, stderr } = await sandbox.exec(["bash", "-ec", change], AT);
  if (exitCode !== 0) throw new Error(stderr);
  return sandbox;
}

/** The whole way of an agent that does `work` in such an image. */
async function wayOf(change: string, work: string) {
  const sandbox = await imaged(change);
  const instance = swe.parse(tally.row);
  await swe.init(instance, sandbox, NO_ABORT);
  const { stdout: status } = await sandbox.exec(["git", "status", "--porcelain"], AT);
  const outcome = await swe.run(
    instance,
    runContext({
      sandbox,
      agent: async () => {
        await sandbox.exec(["bash", "-c", work], AT);
        return { stopReason: "finish", finalMessage: "done" };
      },
    }),
  );
  const verdict: Verdict = await swe.evaluate(
    instance,
    outcome,
    evalContext({ sandbox: await imaged(change) }),
  );
  const files = [...(outcome.patch ?? "").matchAll(/^diff --git a\/(.*) b\//gm)];
  return { status, files: files.map(([, path]) => path), verdict };
}

const NOISE = `echo built >build.log; mkdir -p 'data dir' && printf 'x\\0y' >'data dir/größe.bin'`;

test.each([
  ["files that git does not know", NOISE],
  [
    "files that only .git/info/exclude names",
    `${NOISE}; printf 'build.log\\ndata*\\n' >.git/info/exclude`,
  ],
  [
    "files that only the image's own settings of git ignore",
    `${NOISE}; echo '*.log' >~/.ignore; git config --global core.excludesFile ~/.ignore`,
  ],
  ["edited files", "sed -i 's/adds/quickly adds/' README.md; echo '# set up' >>tally/__init__.py"],
  ["deleted files", "rm docs/logo.bin README.md"],
  ["staged changes", "echo staged >>README.md; git add -A; git mv README.md READ.md"],
  ["other modes", "chmod +x README.md tally/sums.py; git config core.fileMode false"],
  ["links", "ln -s tally link; rm README.md; ln -s tally/sums.py README.md"],
  [
    "ends of lines that git turns round",
    `printf '*.py text eol=crlf\\n' >.gitattributes; git add -A; git -c user.name=a -c user.email=a@b commit -qm crlf; sed -i 's/$/\\r/' tally/__init__.py README.md`,
  ],
  [
    "a filter that git knows no more",
    `printf '*.md filter=own\\n' >.gitattributes; git config filter.own.clean 'tr a-z A-Z'`,
  ],
  [
    "files hidden by git's own marks",
    "git update-index --assume-unchanged README.md; git update-index --skip-worktree tally/__init__.py; echo x >>README.md; echo '# x' >>tally/__init__.py",
  ],
  [
    "a repository in a folder",
    "mkdir inner && cd inner && git init -q && echo y >file.py && git add -A && git -c user.name=a -c user.email=a@b commit -qm x",
  ],
  ["an unborn repository in a folder", "mkdir inner && cd inner && git init -q && echo y >file.py"],
  ["a large file", "head -c 3000000 /dev/zero | tr '\\0' x >huge.txt"],
])(
  "%s that are there at the start are the base, and no part of the change",
  async (_name, change) => {
    const { files, verdict } = await wayOf(change, SOLVE);
    expect(files).toEqual(["tally/sums.py"]);
    expect(verdict).toMatchObject({ reward: 1 });
  },
);

test("the agent finds nothing to be committed, whatever the image has left", async () => {
  const { status } = await wayOf(`${NOISE}; echo x >>README.md; git rm -q docs/logo.bin`, "true");
  expect(status).toBe("");
});

test("set-up that the image left uncommitted is there when the tests run", async () => {
  const broken =
    "sed -i 's/^    return sum(numbers)$/    raise NotImplementedError/' tally/sums.py";
  const mended = `${broken}; git -c user.name=a -c user.email=a@b commit -qam broken; sed -i 's/raise NotImplementedError/return sum(numbers)/' tally/sums.py`;
  expect((await wayOf(mended, SOLVE)).verdict).toMatchObject({ reward: 1 });
});

test("a change on top of what the image left is taken, and nothing else", async () => {
  const { files, verdict } = await wayOf(
    `${NOISE}; echo x >>README.md`,
    `${SOLVE}; echo more >>build.log; echo y >>README.md; echo z >new.txt; chmod +x tally/__init__.py; git stash -q && git stash pop -q`,
  );
  expect(files).toEqual([
    "README.md",
    "build.log",
    "new.txt",
    "tally/__init__.py",
    "tally/sums.py",
  ]);
  expect(verdict).toMatchObject({ reward: 1 });
});

test("an ignored file is part of the change where the agent added it with force", async () => {
  const solve =
    "mkdir -p build tally/build && echo 'x = 1' >tally/build/a.py && echo y >build/b && cp build/b build/c";
  expect((await wayOf("true", `${solve}; git add -f tally/build`)).files).toEqual([
    "tally/build/a.py",
  ]);
  const committed = `${solve}; git add -f build/b; git -c user.name=a -c user.email=a@b commit -qm x`;
  expect((await wayOf("true", committed)).files).toEqual(["build/b"]);
});

import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { descendantsOf, isRunning, killProcess } from "../../src/lib/proc.ts";
import { ControlChannel } from "../../src/sandbox/control-channel.ts";
import { encodeFrame, encodeSpawn, FRAME } from "../../src/sandbox/frames.ts";
import { type Exit, ProcessStream } from "../../src/sandbox/process-stream.ts";
import { waitFor } from "../support/wait-for.ts";
import { setup } from "./setup.ts";

setDefaultTimeout(60_000);

const ENV = { PATH: "/usr/bin:/bin" };

async function supervisor() {
  const bundle = await setup("host");
  const handle = await bundle.start();
  const channel = await ControlChannel.open(handle.controlFd);
  return {
    handle,
    channel,
    spawn(script: string, kind: "pipes" | "terminal" | "null" = "pipes") {
      let output = "";
      const stream = new ProcessStream(
        channel,
        { kind, cwd: "/", argv: ["sh", "-c", script], env: ENV },
        (bytes) => (output += bytes.toString("latin1")),
      );
      return { stream, output: () => output };
    },
    [Symbol.asyncDispose]: () => bundle[Symbol.asyncDispose](),
  };
}

/** Starts `yes` without ever giving back what it has printed. */
function unreadFlood(channel: ControlChannel, window: number) {
  const stream = channel.newStream();
  const seen = { bytes: 0, exit: null as Exit | null };
  channel.listen(stream, (type, payload) => {
    if (type === FRAME.stdout) seen.bytes += payload.length;
  });
  const spawn = { kind: "pipes", window, cwd: "/", argv: ["yes"], env: ENV } as const;
  channel.send(encodeSpawn(stream, { ...spawn, argv: ["yes"] }) as Buffer);
  return seen;
}

function residentKilobytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)?.[1]);
}

test("a stream sends as much as its window allows and not a byte more", async () => {
  await using it = await supervisor();
  const seen = unreadFlood(it.channel, 100_000);
  await waitFor(() => seen.bytes === 100_000, "the window to be used");
  for (let i = 0; i < 20; i++) await it.channel.ping();
  expect(seen.bytes).toBe(100_000);
});

test("streams that nobody reads cost no other one its answers, and bounded memory", async () => {
  await using it = await supervisor();
  const floods = Array.from({ length: 20 }, () => unreadFlood(it.channel, 262_144));
  await waitFor(() => floods.every(({ bytes }) => bytes === 262_144), "the windows to be used");
  const { stream, output } = it.spawn("echo answer");
  expect(await stream.exited).toMatchObject({ code: 0, signal: null });
  expect(output()).toBe("answer\n");
  expect(residentKilobytes(it.handle.holderPid)).toBeLessThan(10_000);
});

test("it sees the end of its socket while its own output is stuck", async () => {
  await using it = await supervisor();
  const { holderPid, holderStartTime } = it.handle;
  for (let i = 0; i < 30; i++) unreadFlood(it.channel, 10_000_000);
  await it.channel.ping();
  it.channel.drop();
  await waitFor(() => descendantsOf(holderPid).length === 30, "the floods to run");
  const { closeFd } = await import("../../src/lib/libc.ts");
  closeFd(it.handle.controlFd);
  await waitFor(() => !isRunning(holderPid, holderStartTime), "the supervisor to end");
});

test("a half-written frame or an unknown one is no reason to fail", async () => {
  await using it = await supervisor();
  it.channel.send(encodeFrame(99, 7, Buffer.from("unknown")));
  it.channel.send(encodeFrame(FRAME.credit, 7));
  it.channel.send(encodeFrame(FRAME.spawn, 8));
  const frame = encodeFrame(FRAME.ping, 9);
  it.channel.send(frame.subarray(0, 4));
  const pong = new Promise<void>((resolve) => it.channel.listen(9, () => resolve()));
  it.channel.send(frame.subarray(4));
  await pong;
});

test("input waits for its reader and arrives whole, also where its end is sent first", async () => {
  await using it = await supervisor();
  const { stream, output } = it.spawn("sleep 0.2; wc -c");
  stream.write(Buffer.alloc(1_000_000, "x"));
  stream.endInput();
  expect(await stream.exited).toMatchObject({ code: 0, signal: null });
  expect(output().trim()).toBe("1000000");
});

test("input for a process that has closed it is dropped and holds nothing up", async () => {
  await using it = await supervisor();
  const { stream, output } = it.spawn("exec <&-; echo closed; sleep 0.2");
  stream.write(Buffer.alloc(1_000_000, "x"));
  stream.endInput();
  expect(await stream.exited).toMatchObject({ code: 0, signal: null });
  expect(output()).toBe("closed\n");
});

test("what a process printed just before its end arrives before its end", async () => {
  await using it = await supervisor();
  for (const kind of ["pipes", "terminal"] as const) {
    const runs = Array.from({ length: 20 }, async () => {
      const { stream, output } = it.spawn("head -c 60000 /dev/zero; kill -9 $$", kind);
      expect(await stream.exited).toMatchObject({ code: null, signal: 9 });
      return output().length;
    });
    expect(new Set(await Promise.all(runs))).toEqual(new Set([60_000]));
  }
});

test("a process without streams says only that it started and ended", async () => {
  await using it = await supervisor();
  const { stream, output } = it.spawn("echo nobody hears; exit 6", "null");
  await stream.started;
  expect(await stream.exited).toMatchObject({ code: 6, signal: null });
  expect(output()).toBe("");
});

test("a signal that follows the start at once is not lost", async () => {
  await using it = await supervisor();
  for (let i = 0; i < 200; i++) {
    const { stream } = it.spawn("exec sleep 1000");
    stream.signal(9);
    expect(await stream.exited).toMatchObject({ code: null, signal: 9 });
  }
});

test("a process starts with no signal blocked or ignored, in a session of its own", async () => {
  await using it = await supervisor();
  const { stream, output } = it.spawn(
    "grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o sid= $$; echo $$",
  );
  await stream.exited;
  const lines = output().trim().split(/\s+/);
  expect(lines.slice(0, 4)).toEqual(["SigBlk:", "0000000000000000", "SigIgn:", "0000000000000000"]);
  expect(lines[4]).toBe(lines[5] as string);
});

test("signals that can be ignored do not end it", async () => {
  await using it = await supervisor();
  const { holderPid, holderStartTime } = it.handle;
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGUSR1", "SIGCHLD"] as const) {
    killProcess(holderPid, signal);
  }
  await it.channel.ping();
  expect(isRunning(holderPid, holderStartTime)).toBe(true);
});

test("it idles without using the processor", async () => {
  await using it = await supervisor();
  const { stream } = it.spawn("exec sleep 100 >&- 2>&-");
  const terminal = it.spawn("exec sleep 100 <&- >&- 2>&-", "terminal");
  await Promise.all([stream.started, terminal.stream.started]);
  await it.channel.ping();
  const ticks = () => {
    const fields = readFileSync(`/proc/${it.handle.holderPid}/stat`, "utf8").split(" ");
    return Number(fields[13]) + Number(fields[14]);
  };
  const before = ticks();
  await Bun.sleep(300);
  expect(ticks() - before).toBeLessThan(3);
});

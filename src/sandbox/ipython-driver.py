"""Runs Python cells for the service: one session, one client at a time, over a Unix socket.

Request: u32 length (little endian), JSON {"code", "max_bytes"}. Answers: u32 length, one letter, payload:
"h" hello, "o" output as it comes, "i" a PNG in base64, "d" done as JSON {"ok", "cut", "cwd", "python"}. Output is whatever reaches descriptors
1 and 2, so that subprocesses and C code count as well. Of more than max_bytes the two ends are kept.
"""

import ast
import base64
import gc
import io
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import threading
import traceback

CHUNK = 65536
PIPE_CHUNKS = 16  # The most that a user may make a pipe hold.
TICK_MS = 10
MAX_IMAGES = 8
MAX_IMAGE_CHARS = 1000000


class Output:
    """Takes what Python's own streams write without a detour, and the rest from the pipe behind descriptors 1 and 2.

    A thread waits at the pipe, so that nobody ever blocks on it, and sleeps through a cell that only prints: to be
    woken would take longer than such a cell. What is in the pipe when Python writes came before, so it goes first.

    Nor is the client woken for each line. Around the beginning of a cell the thread `ticks`, and sends what is held at
    its next tick, so that what was printed outlives the interpreter; later nothing is held.
    """

    def __init__(self):
        # One write end stays ours: without any the read end would be ready for ever.
        self.read_end, write_end = os.pipe()
        self.look = select.poll()
        self.look.register(self.read_end, select.POLLIN)
        self.wake_end, self.waker = os.pipe()
        os.set_blocking(self.read_end, False)
        self.pipe = os.fstat(write_end).st_ino
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        # Whoever holds it may print again: a signal's handler, a finaliser.
        self.lock = threading.RLock()
        self.main = threading.get_ident()
        self.runs = False  # A cell; what comes between two is dropped.
        self.cells, self.ticks, self.held = 0, False, bytearray()
        self.interrupted = False
        self.forked = False
        os.register_at_fork(after_in_child=self.leave)
        sys.stdout, sys.stderr = self.stream(1), self.stream(2)
        threading.Thread(target=self.follow, daemon=True).start()

    def leave(self):
        self.forked = True

    def wake(self):
        os.write(self.waker, b" ")

    def stream(self, fd):
        buffer = io.BufferedWriter(Stream(self, fd))
        text = Text(buffer, encoding="utf-8", errors="replace", line_buffering=True)
        text.output = self
        return text

    def begin(self, client, max_bytes):
        with self.lock:
            self.drain()
            self.client = client
            self.head_left = (max_bytes + 1) // 2
            self.tail, self.tail_limit, self.after_head = bytearray(), max_bytes // 2, 0
            self.runs, self.interrupted = True, False
            self.cells += 1
            if not self.ticks:
                self.ticks = True
                self.wake()

    def end(self, images, outcome):
        """Of what subprocesses of the cell print later nothing belongs to it."""
        with self.lock:
            self.drain()
            self.runs = False
            outcome["cut"] = self.after_head - len(self.tail)
            messages = [(b"i", image) for image in images] + [(b"d", json.dumps(outcome).encode())]
            self.send(self.held + self.tail, *messages)

    def send(self, output, *messages):
        parts = [(b"o", output[at : at + CHUNK]) for at in range(0, len(output), CHUNK)]
        self.held = bytearray()
        send(self.client, *parts, *messages)

    def follow(self):
        poll = select.poll()
        poll.register(self.read_end, select.POLLIN)
        poll.register(self.wake_end, select.POLLIN)
        cells = 0
        while True:
            ready = poll.poll(TICK_MS if self.ticks else None)
            with self.lock:
                if (self.wake_end, select.POLLIN) in ready:
                    os.read(self.wake_end, CHUNK)
                if self.interrupted and self.runs:
                    signal.pthread_kill(self.main, signal.SIGINT)
                self.drain()
                if self.held:
                    self.send(self.held)
                if not ready:
                    self.ticks, cells = cells != self.cells, self.cells

    def drain(self):
        """Not for ever: where a subprocess floods the pipe, others have their turn."""
        for _ in range(PIPE_CHUNKS):
            if not self.look.poll(0):
                return
            try:
                data = os.read(self.read_end, CHUNK)
            except BlockingIOError:
                return
            if self.runs:
                self.take(data)

    def write(self, fd, data):
        """As if `data` went through the descriptor, wherever that leads now."""
        if self.forked or os.fstat(fd).st_ino != self.pipe:
            return write_elsewhere(fd, data)
        with self.lock:
            self.drain()
            if self.runs:
                self.take(bytes(data))
        return len(data)

    def take(self, data):
        """Of the head all is sent soon; the rest is kept as the tail."""
        head, rest = data[: self.head_left], data[self.head_left :]
        self.head_left = max(0, self.head_left - len(head))
        self.held += head
        if self.held and not (self.ticks and len(self.held) < CHUNK):
            self.send(self.held)
        if rest:
            self.after_head += len(rest)
            self.tail += rest[max(0, len(rest) - self.tail_limit) :]
            del self.tail[: max(0, len(self.tail) - self.tail_limit)]

    def interrupt(self, _, frame):
        """Outside a cell it is late and hits nothing; within a write it waits, or Python would write the same again."""
        stack = set()
        while frame:
            stack.add(frame.f_code)
            frame = frame.f_back
        if run.__code__ not in stack:
            return
        if Stream.write.__code__ not in stack or write_elsewhere.__code__ in stack:
            self.interrupted = False
            raise KeyboardInterrupt
        self.interrupted = True
        self.wake()


class Text(io.TextIOWrapper):
    def write(self, text):
        count = super().write(text)
        if self.output.interrupted and threading.get_ident() == self.output.main:
            self.output.interrupted = False
            raise KeyboardInterrupt
        return count


class Stream(io.RawIOBase):
    """Descriptor 1 or 2, for Python's own writes."""

    mode = "wb"

    def __init__(self, output, fd):
        self.output, self.name = output, fd

    def writable(self):
        return True

    def fileno(self):
        return self.name

    def write(self, data):
        return self.output.write(self.name, data)


def write_elsewhere(fd, data):
    return os.write(fd, data)


def send(client, *messages):
    frames = (struct.pack("<I", len(payload) + 1) + kind + payload for kind, payload in messages)
    try:
        client.sendall(b"".join(frames))
    except OSError:
        pass  # The client is gone; the cell goes on.


def receive(client):
    """The next request, or None when the client has left."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack("<I", data[:4])[0]:
        more = client.recv(CHUNK)
        if not more:
            return None
        data += more
    return json.loads(data[4:])


class Plain:
    """Python alone, for images without IPython."""

    images = ()

    def __init__(self):
        self.names = {"__name__": "__main__", "__builtins__": __builtins__}

    def run(self, code):
        try:
            tree = ast.parse(code, "<cell>")
            last = None
            if tree.body and isinstance(tree.body[-1], ast.Expr):
                last = ast.Expression(tree.body.pop().value)
            exec(compile(tree, "<cell>", "exec"), self.names)
            if last is not None:
                sys.displayhook(eval(compile(last, "<cell>", "eval"), self.names))
            return True
        except BaseException as error:
            frames = error.__traceback__.tb_next if error.__traceback__ else None
            traceback.print_exception(type(error), error, frames)
            return False


def ipython():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.autoawait = False
    shell = InteractiveShell.instance(config=config)
    shell.displayhook.write_output_prompt = lambda: None
    sys.modules["__main__"].__dict__.setdefault("__file__", "<cell>")

    class Session:
        images = []

        def run(self, code):
            self.images.clear()
            return bool(shell.run_cell(code, store_history=True).success)

        def keep(self, data):
            png = data.get("image/png")
            if isinstance(png, bytes):
                png = base64.b64encode(png).decode()
            if png and len(png) <= MAX_IMAGE_CHARS and len(self.images) < MAX_IMAGES:
                self.images.append("".join(png.split()).encode())

    skip_needless_transforms(shell.input_transformer_manager)
    session = Session()
    publish, write_format_data = shell.display_pub.publish, shell.displayhook.write_format_data

    def publish_keeping(data, *args, **named):
        session.keep(data)
        publish(data, *args, **named)

    def write_keeping(format_dict, *args, **named):
        session.keep(format_dict)
        write_format_data(format_dict, *args, **named)

    shell.display_pub.publish = publish_keeping
    shell.displayhook.write_format_data = write_keeping
    return session


ESCAPES = re.compile(r"[%!?]|^\s*[,;/]")


def skip_needless_transforms(manager):
    """Without these characters none of IPython's own transformers changes anything, but each takes a look."""
    transform, own = getattr(manager, "do_token_transforms", None), list(manager.token_transformers)
    if transform is None:
        return

    def transform_where_needed(lines):
        if manager.token_transformers == own and not any(map(ESCAPES.search, lines)):
            return lines
        return transform(lines)

    manager.do_token_transforms = transform_where_needed


def working_directory():
    try:
        return os.getcwd()
    except OSError:
        return ""


def run(session, code):
    """While this is on the stack, an interrupt counts."""
    return session.run(code)


def serve(listener, output, session):
    while True:
        client, _ = listener.accept()
        try:
            send(client, (b"h", b""))
            while (request := receive(client)) is not None:
                output.begin(client, request["max_bytes"])
                try:
                    ok = run(session, request["code"])
                except KeyboardInterrupt:
                    ok = False
                for stream in (sys.stdout, sys.stderr):
                    try:
                        stream.flush()
                    except Exception:
                        pass
                if signal.getsignal(signal.SIGINT) != output.interrupt:
                    signal.signal(signal.SIGINT, output.interrupt)
                end = {"ok": ok, "cwd": working_directory(), "python": sys.executable}
                output.end(session.images, end)
        except OSError:
            pass
        finally:
            client.close()


def main():
    path = sys.argv[1]
    signal.signal(signal.SIGINT, lambda *_: None)
    # Bound before the slow import: the service connects early and waits for the hello.
    listener = socket.socket(socket.AF_UNIX)
    if os.path.lexists(path):
        os.unlink(path)
    listener.bind(path)
    listener.listen(8)
    output = Output()
    signal.signal(signal.SIGINT, output.interrupt)
    sys.argv = [""]
    sys.path[0] = ""
    try:
        session = ipython()
    except Exception:
        session = Plain()
    gc.freeze()  # What is there by now stays: no collection need look at it.
    serve(listener, output, session)


main()

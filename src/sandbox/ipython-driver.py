"""Runs Python cells for the service: one session, one client at a time, over a Unix socket.

Request: u32 length (little endian), JSON {"code", "max_bytes"}. Answers: u32 length, one letter, payload:
"h" hello, "o" output as it comes, "i" a PNG in base64, "d" done as JSON {"ok", "cut", "cwd", "python"}. Output is whatever reaches descriptors
1 and 2, so that subprocesses and C code count as well. Of more than max_bytes the two ends are kept.
"""

import ast
import base64
import collections
import json
import os
import signal
import socket
import struct
import sys
import threading
import traceback

CHUNK = 65536
MAX_IMAGES = 8
MAX_IMAGE_CHARS = 1000000


class Output:
    """Reads the pipe behind descriptors 1 and 2 for ever, so that nobody ever blocks on it.

    It also sends what follows a cell's output, because it knows when all of that has passed; to wake the main
    thread for it would take longer than the rest.
    """

    def __init__(self):
        self.read_end, write_end = os.pipe()
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        os.close(write_end)
        os.set_inheritable(self.read_end, False)
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)
        self.ended = threading.Event()
        self.ended.set()
        self.end_mark = b""
        threading.Thread(target=self.read, daemon=True).start()

    def begin(self, client, end_mark, max_bytes):
        # Where a client left early, the last cell's end may still be on its way through the pipe.
        self.ended.wait()
        self.ended.clear()
        self.head_left = (max_bytes + 1) // 2
        self.tail_limit = max_bytes // 2
        self.tail, self.tail_length, self.cut = collections.deque(), 0, 0
        self.held = b""
        self.end_mark = end_mark
        self.client = client
        self.last_words = list

    def read(self):
        while True:
            data = os.read(self.read_end, CHUNK)
            if self.end_mark:
                self.take(self.held + data)

    def take(self, data):
        """Passes on all but what may be the beginning of the end mark."""
        at = data.find(self.end_mark)
        if at < 0:
            at = data.find(b"\0", max(0, len(data) - len(self.end_mark) + 1))
            at = len(data) if at < 0 else at
            self.held = data[at:]
            send(self.client, *((b"o", piece) for piece in self.keep(data[:at])))
            return
        head = self.keep(data[:at])
        messages = [(b"o", piece) for piece in [*head, *self.tail]] + self.last_words()
        client, self.end_mark = self.client, b""
        self.ended.set()
        send(client, *messages)

    def keep(self, data):
        """Gives what is to be sent at once, of the head, and keeps the rest as the tail."""
        head, data = data[: self.head_left], data[self.head_left :]
        self.head_left -= len(head)
        sent = [head] if head else []
        if not data:
            return sent
        self.tail.append(data)
        self.tail_length += len(data)
        while self.tail_length > self.tail_limit:
            over = self.tail_length - self.tail_limit
            first = self.tail.popleft()
            if len(first) > over:
                self.tail.appendleft(first[over:])
            self.cut += min(over, len(first))
            self.tail_length -= min(over, len(first))
        return sent



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
        more = client.recv(1 << 20)
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


def working_directory():
    try:
        return os.getcwd()
    except OSError:
        return ""


def last_words(output, session, ok):
    images = [(b"i", image) for image in session.images]
    end = {"ok": ok, "cwd": working_directory(), "python": sys.executable}
    return lambda: [*images, (b"d", json.dumps({**end, "cut": output.cut}).encode())]


def serve(listener, output, session):
    # An interrupt that comes when no cell runs is late and hits nothing.
    def late(*_):
        return None

    while True:
        client, _ = listener.accept()
        try:
            send(client, (b"h", b""))
            while (request := receive(client)) is not None:
                mark = b"\x00end " + os.urandom(16) + b"\x00"
                output.begin(client, mark, request["max_bytes"])
                ok = False
                try:
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                    ok = session.run(request["code"])
                except KeyboardInterrupt:
                    pass
                finally:
                    signal.signal(signal.SIGINT, late)
                for stream in (sys.stdout, sys.stderr):
                    try:
                        stream.flush()
                    except Exception:
                        pass
                output.last_words = last_words(output, session, ok)
                os.write(2, mark)
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
    sys.argv = [""]
    sys.path[0] = ""
    try:
        session = ipython()
    except Exception:
        session = Plain()
    serve(listener, output, session)


main()

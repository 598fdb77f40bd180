"""The rivals of the shell bench: `echo` in a bash of the host's own, without any sandbox.

Arguments: pty, pexpect or tmux, and for tmux its program. Each line of input is a number of commands to run;
the answer is a line with the milliseconds of each, as JSON.
"""

import json
import os
import subprocess
import sys
import time

BASH = ["bash", "--norc", "--noprofile"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": "", "PS2": ""}
# Also what every answer of ours has: the exit code and the folder.
COMMAND = 'echo hello; echo "MARK:$?:$PWD:END"'


class Pty:
    """A blocking reader: nothing is faster with a terminal."""

    def __init__(self):
        import ptyprocess

        self.terminal = ptyprocess.PtyProcess.spawn(BASH, env=ENVIRONMENT, echo=False)
        self.terminal.write(b"PS1=; unset PROMPT_COMMAND; bind 'set enable-bracketed-paste off'\n")
        time.sleep(0.5)
        self.terminal.write(b"echo ready\n")
        self.read_until(b"ready\r\n")

    def run(self):
        self.terminal.write(COMMAND.encode() + b"\n")
        self.read_until(b":END\r\n")

    def read_until(self, end):
        output = b""
        while not output.endswith(end):
            output += self.terminal.read(65536)


class Pexpect:
    """Its prompt and a regular expression, as ProRL's and OpenHands' first shells have it."""

    def __init__(self):
        import pexpect

        self.shell = pexpect.spawn(BASH[0], BASH[1:], env=ENVIRONMENT, echo=False, encoding="utf-8")
        self.shell.sendline("bind 'set enable-bracketed-paste off'; PS1='[PROMPT'; PS1+=']'")
        self.shell.expect(r"\[PROMPT\]")

    def run(self):
        self.shell.sendline(COMMAND)
        self.shell.expect(r"\[PROMPT\]")
        assert "MARK:0" in self.shell.before


class Tmux:
    """As OpenHands does it: the keys are sent, the pane is captured each half second until the prompt is back, and
    then the screen is cleared."""

    POLL_SECONDS = 0.5
    CLEAR_SECONDS = 0.1

    def __init__(self):
        self.program = [sys.argv[2], "-L", f"rolloutd-bench-{os.getpid()}", "-f", "/dev/null"]
        self.tmux("new-session", "-d", "-x", "1000", "-y", "1000", "-s", "bench", *BASH)
        self.run()

    def tmux(self, *arguments):
        run = subprocess.run([*self.program, *arguments], check=True, capture_output=True, env=ENVIRONMENT)
        return run.stdout.decode()

    def run(self):
        self.tmux("send-keys", "-t", "bench", COMMAND, "Enter")
        while "MARK:0" not in self.tmux("capture-pane", "-J", "-p", "-S", "-", "-t", "bench"):
            time.sleep(self.POLL_SECONDS)
        self.tmux("send-keys", "-t", "bench", "C-l")
        time.sleep(self.CLEAR_SECONDS)
        self.tmux("clear-history", "-t", "bench")

    def close(self):
        self.tmux("kill-server")


rival = {"pty": Pty, "pexpect": Pexpect, "tmux": Tmux}[sys.argv[1]]()
print("[]", flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = time.perf_counter()
        rival.run()
        times.append((time.perf_counter() - start) * 1000)
    print(json.dumps(times), flush=True)
if hasattr(rival, "close"):
    rival.close()

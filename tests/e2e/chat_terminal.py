"""`ingle chat` on a terminal, and a person's keys."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import ingle_process

ANSWER_SECONDS = 120
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x07")
STATUS = r"\[\d+ tokens, [\d.]+ per second\]"
PROMPT = r"\n> $"
END = "\x04"


class Chat:
    """`ingle chat` on a terminal of its own, seen from the person's side.

    `ignoring`: the signals that it finds ignored, as after a shell's trap ''.
    """

    def __init__(self, command, home, cwd=None, ignoring=()):
        self.fd, terminal = pty.openpty()
        self.resize(200)

        def start():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            # nohup, and what starts a job in the background, ignore some too.
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            for number in ignoring:
                signal.signal(number, signal.SIG_IGN)

        self.process = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=cwd,
            env=ingle_process.ENVIRONMENT
            | {"INGLE_HOME": str(home), "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=start,
        )
        os.close(terminal)
        self.raw = b""  # what was shown since the last thing that was typed
        self.wait_for(PROMPT, ingle_process.START_SECONDS)

    def resize(self, columns):
        size = struct.pack("4H", 40, columns, 0, 0)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size)

    def type(self, text):
        self.raw = b""
        os.write(self.fd, text.encode())

    @property
    def shown(self):
        text = self.raw.decode(errors="replace")
        return ESCAPES.sub("", text).replace("\r", "")

    def read(self, seconds):
        """Takes in what is shown next; false: it ended, or nothing came."""
        if not select.select([self.fd], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: it ended
            return False
        self.raw += data
        return data != b""

    def wait_for(self, pattern, seconds=ANSWER_SECONDS):
        """What was shown until the pattern was there."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.shown):
            more = self.read(deadline - time.monotonic())
            assert more, f"no {pattern!r} in {self.shown!r}"
        return self.shown

    def read_to_end(self):
        deadline = time.monotonic() + ingle_process.STOP_SECONDS
        while self.read(deadline - time.monotonic()):
            pass

    def ask(self, text):
        """Types a line; what was shown until the next prompt."""
        self.type(text + "\r")
        return self.wait_for(PROMPT)

    def exit_code(self):
        """Nothing: it runs still."""
        self.read_to_end()
        try:
            return self.process.wait(ingle_process.STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)

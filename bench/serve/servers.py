"""Who is measured: how each server is started, and what it takes."""

import contextlib
import pathlib
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import machine

START_SECONDS = 60
STOP_SECONDS = 20


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Ingle:
    name = "ingle"

    def __init__(self, program, model, threads):
        self.program = program
        self.model = model
        self.threads = threads

    def command(self, port):
        return [
            *(self.program, "serve", "--model", self.model, "--port", port),
            *("--threads", self.threads),
        ]


class LlamaServer:
    """Every slot has the model's whole context, as every row of ingle does."""

    def __init__(self, folder, model, threads, rows, context, flash=False):
        self.folder = folder
        self.model = model
        self.threads = threads
        self.rows = rows
        self.context = context
        self.flash = flash
        self.name = "llama-server " + model.stem.upper().split("-")[-1]

    def with_flash(self, flash):
        return LlamaServer(
            self.folder, self.model, self.threads, self.rows, self.context, flash
        )

    def command(self, port):
        return [
            *(self.folder / "llama-server", "-m", self.model, "--port", port),
            *("-t", self.threads, "-np", self.rows, "--cont-batching"),
            *("-c", self.rows * self.context, "--jinja", "--no-ui"),
            *("-fa", "on" if self.flash else "off"),
        ]


class Running:
    """A server that answers; a context manager that ends it."""

    def __init__(self, who):
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(word) for word in who.command(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait_until_ready(who.name)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def _wait_until_ready(self, name):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                self.log.seek(0)
                last = self.log.read().decode(errors="replace").strip()
                raise machine.Failed(f"{name} ended: {last.split(chr(10))[-1]}")
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                url = f"http://127.0.0.1:{self.port}/health"
                with urllib.request.urlopen(url, timeout=5):
                    return
            time.sleep(0.05)
        raise machine.Failed(f"{name} was not ready in {START_SECONDS} s")

    def busy_seconds(self):
        """Processor time that it has taken."""
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text("ascii")
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / machine.TICKS

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status")
        for line in status.read_text("ascii").split("\n"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0

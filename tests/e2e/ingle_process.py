"""The real program: found, run, served from."""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "build" / "release" / "bin" / "ingle"
HOME = pathlib.Path(os.environ.get("INGLE_HOME", ROOT / ".ingle"))
MODEL = HOME / "models" / "SmolLM2-135M-Instruct"

ENVIRONMENT = os.environ | {"INGLE_HOME": str(HOME)}

LISTENING = re.compile(r"listening on http://([^\s/]+):(\d+)")
START_SECONDS = 120  # a cold disk
STOP_SECONDS = 20
RUN_SECONDS = 300


def run(*arguments, variables=None):
    """Runs a command of ingle to its end; output as text."""
    return subprocess.run(
        [BINARY, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
        env={**ENVIRONMENT, **(variables or {})},
    )


def generate(model, *arguments):
    """`ingle generate --json`, parsed; fails unless it succeeds."""
    done = run("generate", "--model", model, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Server:
    """An `ingle serve` on a free port, ready when constructed."""

    def __init__(self, *arguments, command=(BINARY, "serve"), variables=None):
        self.process = subprocess.Popen(
            [*map(str, command), "--port", "0", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT | (variables or {}),
            start_new_session=True,  # a Ctrl-C of ours is not the server's
        )
        self.output = []
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self.port = None
        self._reader.start()
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def _read(self):
        for line in self.process.stdout:
            self.output.append(line)
            found = LISTENING.search(line)
            if found:
                self.port = int(found.group(2))
                self._listening.set()
        self._listening.set()

    def _wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS
        self._listening.wait(START_SECONDS)
        assert self.port, f"the server did not listen:\n{self.log()}"
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"it ended:\n{self.log()}"
            if self.health() == 200:
                return
            time.sleep(0.05)
        raise AssertionError(f"/health was never 200:\n{self.log()}")

    def log(self):
        return "".join(self.output)

    def health(self):
        """The status of /health."""
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=10) as r:
                return r.status
        except urllib.error.HTTPError as error:
            return error.code

    def post(self, path, body):
        """An open response to a POST; `body` is JSON, or bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path,
            data=data,
            headers={"Content-Type": "application/json"},
        )
        return urllib.request.urlopen(request, timeout=RUN_SECONDS)

    def error_of(self, path, body):
        """The status and the error of a POST that is not answered."""
        try:
            self.post(path, body).close()
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["error"]
        raise AssertionError(f"{path} has answered")

    def end(self, number=signal.SIGTERM):
        """Sends the signal; the exit code."""
        self.process.send_signal(number)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still there after {number.name}") from None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()

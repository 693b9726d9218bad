"""Asks text_probe: see the top of text_probe.cpp."""

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(
    os.environ.get(
        "INGLE_TEXT_PROBE", ROOT / "build" / "release" / "tests" / "text_probe"
    )
)


def ask(requests):
    """One answer for each request."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    run = subprocess.run(
        [BINARY],
        input=lines,
        capture_output=True,
        text=True,
        env={**os.environ, "TZ": "UTC"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.split("\n") if line]
    assert len(answers) == len(requests), run.stderr
    return answers

"""The README's examples, run as they stand but for the port."""

import re
import subprocess
import sys

import pytest

import ingle_process
import node_process

README = ingle_process.ROOT / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = re.compile(r"\b(localhost|127\.0\.0\.1):8080\b")

COMMANDS = {
    "python": [sys.executable, "-c"],
    "js": node_process.COMMAND,
    "bash": ["bash", "-euo", "pipefail", "-c"],
}


def examples():
    """(language, code)"""
    return [
        (language, code)
        for language, code in FENCE.findall(README.read_text())
        if language in COMMANDS and ADDRESS.search(code)
    ]


def test_readme_has_an_example_in_each_language():
    assert {language for language, _ in examples()} == set(COMMANDS)


@pytest.mark.parametrize("example", examples(), ids=lambda e: e[0])
def test_readme_example_answers(server, example):
    language, code = example
    folder = None
    if language == "js":
        node_process.require()
        folder = node_process.FOLDER
    done = subprocess.run(
        [*COMMANDS[language], ADDRESS.sub(f"127.0.0.1:{server.port}", code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout

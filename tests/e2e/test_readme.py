"""The README's examples, run as they stand but for the port."""

import re
import subprocess
import sys

import pytest

import ingle_process

README = ingle_process.ROOT / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = re.compile(r"\b(localhost|127\.0\.0\.1):8080\b")


def examples():
    if not README.exists():
        return []
    found = []
    for language, code in FENCE.findall(README.read_text()):
        if language == "python":
            found.append([sys.executable, "-c", code])
        elif language == "bash" and "curl" in code:
            found.append(["bash", "-euo", "pipefail", "-c", code])
    return found


def test_readme_has_a_curl_and_a_python_example():
    programs = {arguments[0] for arguments in examples()}
    assert programs == {"bash", sys.executable}


@pytest.mark.parametrize("example", examples(), ids=lambda e: e[0])
def test_readme_example_answers(server, example):
    *start, code = example
    code, replaced = ADDRESS.subn(f"127.0.0.1:{server.port}", code)
    assert replaced, "the example names no address on port 8080"
    done = subprocess.run(
        [*start, code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout

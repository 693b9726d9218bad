"""The README's examples, run as they stand but for the port."""

import os
import re
import subprocess
import sys

import pytest

import ingle_process
import node_process
from chat_terminal import ANSWER_SECONDS, END, PROMPT, STATUS, Chat
from model_folder import edit_json, link_model

README = ingle_process.ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = re.compile(r"\b(localhost|127\.0\.0\.1):8080\b")
SHELL = ["bash", "-euo", "pipefail", "-c"]

# Those that ask a server.
COMMANDS = {
    "python": [sys.executable, "-c"],
    "js": node_process.COMMAND,
    "bash": SHELL,
}

POET = 'scripts/ingle chat --system "You are a poet."'
REVIEW = 'git diff | scripts/ingle chat --system "Review this change."'
COMPLETIONS = "source <(scripts/ingle completions bash)"
# Each has a test of its own, here or elsewhere.
SHELL_LINES = {
    "scripts/serve",  # test_process.py
    "scripts/test",  # runs this
    POET,
    REVIEW,
    COMPLETIONS,
}


def fences():
    """(language, code)"""
    return FENCE.findall(README.read_text())


def examples():
    return [each for each in fences() if each[0] in COMMANDS]


@pytest.fixture
def home(model, tmp_path):
    """$INGLE_HOME with a default model that answers shortly, and greedily."""
    folder = tmp_path / "home"
    (folder / "models").mkdir(parents=True)
    short = link_model(model, folder / "models" / model.name)
    edit_json(
        short, "config.json", lambda c: c.update(max_position_embeddings=512)
    )
    edit_json(short, "generation_config.json", lambda c: c.update(temperature=0))
    return folder


def run_line(line, home, **variables):
    return subprocess.run(
        [*SHELL, line],
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
        check=False,
        cwd=ingle_process.ROOT,
        env=os.environ | {"INGLE_HOME": str(home)} | variables,
    )


def test_every_example_of_the_readme_is_run():
    assert {language for language, _ in fences()} == {"sh", *COMMANDS}
    assert {language for language, _ in examples()} == set(COMMANDS)
    assert all(ADDRESS.search(code) for _, code in examples())
    lines = [
        line.split("#")[0].strip()
        for language, code in fences()
        if language == "sh"
        for line in code.splitlines()
    ]
    assert set(lines) == SHELL_LINES


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


def test_readme_chat_talks(home):
    chat = Chat([*SHELL, POET], home, cwd=ingle_process.ROOT)
    try:
        shown = chat.ask("What is the capital of France?")
        assert re.search(f"{STATUS}.*{PROMPT}", shown)
        chat.type(END)
        assert chat.exit_code() == 0
    finally:
        chat.close()


def test_readme_review_answers(home, tmp_path):
    repository = tmp_path / "repository"
    git = ["git", "-C", repository]
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    (repository / "sum.py").write_text("def add(a, b):\n    return a + b\n")
    subprocess.run([*git, "add", "."], check=True)
    (repository / "sum.py").write_text("def add(a, b):\n    return a - b\n")
    done = run_line(
        REVIEW,
        home,
        GIT_DIR=str(repository / ".git"),
        GIT_WORK_TREE=str(repository),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_readme_completions_are_there_in_the_shell(binary, home):
    done = run_line(COMPLETIONS + "\ncomplete -p ingle", home)
    assert done.returncode == 0, done.stderr
    assert "_ingle" in done.stdout

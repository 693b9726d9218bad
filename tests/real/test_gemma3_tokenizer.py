"""The tokenizer that `ingle import` rebuilds of Gemma 3's GGUF file against
that of llama.cpp, which reads the same file."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "text_truth"))
import corpus  # noqa: E402
import probe  # noqa: E402

GGUF = ROOT / ".setup" / "real" / "gemma-3-270m-q4_k_m.gguf"
SERVER = ROOT / ".setup" / "peers" / "native" / "bin" / "llama-server"
HOME = pathlib.Path(os.environ.get("INGLE_HOME", ROOT / ".ingle"))
TOKENIZER = HOME / "models" / "gemma-3-270m" / "tokenizer.json"

# What the vocabulary has a token of its own for, and what it has none for.
ATOMS = [
    *(" ", "  ", " " * 31, " " * 33, "\n", "\n" * 31, "\n" * 40, "\t"),
    *("\t" * 32, "\u2581", "\u2581\u2581", "\u00a0", "\r\n", "\x00", "\ufffd"),
    *("<start_of_turn>", "<end_of_turn>\n", "<bos>", "<eos>", "<unk>", "<pad>"),
    *("[multimodal]", "<h1>", "</code>", "<0x0A>", "<unused7>"),
    *("é", "e\u0301", "漢字", "नमस्ते", "\U0001f469\u200d\U0001f680"),
    *("\U0010ffff", "hello", "world", "The", "ab", "a", "123", "."),
]


def texts():
    rng = random.Random(1)
    mixed = ["".join(rng.choices(ATOMS, k=rng.randint(1, 12))) for _ in range(1000)]
    ranges = ((1, 0x7F), (1, 0x7FF), (1, 0xD7FF), (0x10000, 0x1FFFF))
    wild = [
        "".join(
            chr(rng.randint(*rng.choice(ranges)))
            for _ in range(rng.randint(1, 40))
        )
        for _ in range(500)
    ]
    return [*corpus.TEXTS.values(), *mixed, *wild]


@contextlib.contextmanager
def llama_server():
    """Its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [SERVER, "-m", GGUF, "--host", "127.0.0.1", "--port", str(port)]
        + ["-c", "512", "-np", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health", process)
        yield url
    finally:
        process.terminate()
        process.wait()


def wait_for(url, process, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.2)
    pytest.fail("llama-server does not answer")


def llama_ids(url, text):
    body = {"content": text, "add_special": True, "parse_special": True}
    request = urllib.request.Request(
        f"{url}/tokenize",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["tokens"]


def test_ids_are_those_of_llama_cpp():
    needs = {
        TOKENIZER: "scripts/setup real",
        GGUF: "scripts/setup real",
        SERVER: "bench/peers/build",
        probe.BINARY: "scripts/test text",
    }
    for path, command in needs.items():
        if not path.exists():
            pytest.skip(f"no {path}: run {command}")
    asked = texts()
    common = {"op": "encode", "tokenizer": str(TOKENIZER), "special": True}
    ours = probe.ask([{**common, "text": text} for text in asked])
    with llama_server() as url:
        for text, answer in zip(asked, ours):
            assert answer.get("ids") == llama_ids(url, text), repr(text)

"""What commands do besides answering: get, bench, signals, pipes, set-up."""

import json
import os
import signal
import subprocess
import time

import pytest

import ingle_process
from ingle_process import BINARY, ENVIRONMENT

ENDLESS = ("generate", "--ids", "504", "--max-tokens", "8000", "--ignore-eos")


def start(*arguments, **options):
    return subprocess.Popen(
        [BINARY, *arguments], text=True, env=ENVIRONMENT, **options
    )


def test_get_of_a_model_that_is_there_says_so(model):
    done = ingle_process.run("get", "--json")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert out["folder"] == str(model)
    assert out["downloaded"] is False


@pytest.mark.parametrize("python", ["false", "/no/such/python"])
def test_failed_download_is_one_line_and_leaves_nothing(binary, tmp_path, python):
    done = subprocess.run(
        [binary, "get"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT
        | {"INGLE_HOME": str(tmp_path), "INGLE_PYTHON": python},
    )
    assert done.returncode == 1
    assert "download" in done.stderr.strip().splitlines()[-1]
    assert os.listdir(tmp_path) == []


def test_download_that_was_killed_is_swept(binary, tmp_path):
    (tmp_path / ".get-999999999").mkdir()
    (tmp_path / ".get-999999999" / "part").write_text("x")
    subprocess.run(
        [binary, "get"],
        capture_output=True,
        check=False,
        env=ENVIRONMENT
        | {"INGLE_HOME": str(tmp_path), "INGLE_PYTHON": "false"},
    )
    assert os.listdir(tmp_path) == []


def test_bench_measures_the_default_model(model):
    done = ingle_process.run(
        *("bench", "--prompt-tokens", 16, "--max-tokens", 2),
        *("--repeat", 1, "--json"),
    )
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert out["prefill_tokens_per_second"]["median"] > 0
    assert out["decode_tokens_per_second"]["median"] > 0


def test_generate_prints_as_it_decodes(model):
    process = start(*ENDLESS, stdout=subprocess.PIPE)
    assert process.stdout.read(1)
    assert process.poll() is None
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_generate_keeps_its_text_and_exits_130(model, number):
    process = start(*ENDLESS, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = process.stdout.read(1)
    process.send_signal(number)
    rest, errors = process.communicate(timeout=ingle_process.STOP_SECONDS)
    assert process.returncode == 130, errors
    assert (first + rest).endswith("\n")


def test_output_that_nobody_reads_ends_generate_with_an_error(model):
    read_end, write_end = os.pipe()
    process = start(*ENDLESS, stdout=write_end, stderr=subprocess.PIPE)
    os.close(write_end)
    os.close(read_end)
    _, errors = process.communicate(timeout=120)
    assert process.returncode > 0
    assert process.returncode != 128 + signal.SIGPIPE
    assert errors == "" or "standard output" in errors


def test_second_set_up_does_nothing_and_says_so(model):
    started = time.monotonic()
    done = subprocess.run(
        [ingle_process.ROOT / "scripts" / "setup"],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    assert "nothing to do" in done.stderr
    assert seconds < 2

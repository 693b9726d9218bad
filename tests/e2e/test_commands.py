"""What commands do besides answering: get, bench, signals, pipes, set-up."""

import json
import os
import signal
import subprocess
import time

import pytest

import ingle_process
from ingle_process import BINARY, ENVIRONMENT
from model_folder import edit_json, link_model

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
        *("bench", "--prompt", 16, "--gen", 2, "--depth", "0,8"),
        *("--batch", "1,2", "--repeat", 1, "--json"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    out = json.loads(done.stdout)
    rates = {result["test"]: result["tok_s"] for result in out["results"]}
    names = ("pp16", "tg2", "tg2 b2", "tg2@d8", "tg2@d8 b2", "tg2+sample")
    assert set(rates) == set(names)
    assert min(rates.values()) > 0
    assert len(out["commit"]) == 40
    assert len(out["model_hash"]) == 32
    assert out["numerics"] == "near"
    assert out["threads"] >= 1
    weights = (model / "model.safetensors").stat().st_size
    assert out["peak_rss_bytes"] > weights


def test_bench_uses_the_instructions_that_it_is_told_to(model):
    sizes = ("--prompt", 4, "--gen", 0, "--repeat", 1, "--json")
    done = ingle_process.run(
        "bench", *sizes, variables={"INGLE_ISA": "portable"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["isa"] == "portable"


@pytest.mark.parametrize(
    "arguments",
    [("bench", "--prompt", "4", "--gen", "0"), ("generate", "--ids", "504"), ("chat",)],
    ids=lambda arguments: arguments[0],
)
def test_instructions_that_are_not_there_are_an_error(model, arguments):
    done = ingle_process.run(*arguments, variables={"INGLE_ISA": "avx9"})
    assert done.returncode != 0
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert "INGLE_ISA" in last and "avx9" in last and "portable" in last


def test_bench_goes_past_the_models_context(model, tmp_path):
    short = link_model(model, tmp_path / "short")
    edit_json(short, "config.json", lambda c: c.update(max_position_embeddings=16))
    sizes = ("--prompt", 20, "--gen", 2, "--depth", 20, "--repeat", 1)
    done = ingle_process.run("bench", "--model", short, *sizes)
    assert done.returncode == 0, done.stderr
    for test in ("pp20", "tg2@d20"):
        assert f"\n{test} " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gen", "1,x"),
        ("--prompt", "-1"),
        ("--batch", "0"),
        ("--repeat", "0"),
        ("--json", "--csv"),
        ("--prompt", "0", "--gen", "0"),
    ],
    ids=" ".join,
)
def test_bench_refuses_sizes_that_are_none(binary, arguments):
    done = ingle_process.run("bench", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert arguments[0] in done.stderr.splitlines()[0]


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


@pytest.mark.parametrize(
    "command",
    ["generate --ids 504 --max-tokens 3", "chat", "ls", "doctor", "--help"],
)
def test_output_that_a_full_disk_loses_is_one_clear_line(model, command):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [BINARY, *command.split()],
            input="hello",
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=ingle_process.RUN_SECONDS,
            check=False,
            env=ENVIRONMENT,
        )
    assert done.returncode == 1
    assert done.stderr == "ingle: standard output can't be written\n"


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

"""`ingle generate` and the small commands."""

import json
import os

import pytest

import ingle_process
from model_folder import link_model

PROMPT_IDS = "504,3575,282,4649,314"


def test_json_shape(model):
    out = ingle_process.generate(
        model, "--prompt", "The capital of France is", "--max-tokens", 4
    )
    assert set(out) == {"ids", "text", "finish_reason", "usage", "timings"}
    assert len(out["ids"]) == 4
    assert isinstance(out["text"], str)
    assert out["finish_reason"] == "length"
    assert out["usage"]["completion_tokens"] == 4
    assert all(value >= 0 for value in out["timings"].values())


@pytest.mark.parametrize(
    "arguments",
    [("generate", "--prompt"), ("chat", "--system")],
    ids=lambda arguments: arguments[0],
)
def test_text_that_is_not_utf_8_is_refused(model, arguments):
    latin_1 = os.fsdecode(b"caf\xe9")
    done = ingle_process.run(*arguments, latin_1, "--model", model)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"{arguments[1]} is not UTF-8" in done.stderr


def test_text_is_that_of_json(model):
    arguments = ("--prompt", "Once upon a time", "--max-tokens", 12)
    done = ingle_process.run("generate", "--model", model, *arguments)
    assert done.returncode == 0, done.stderr
    out = ingle_process.generate(model, *arguments)
    assert out["text"].strip() in done.stdout


def test_default_model_is_used_without_a_flag(model):
    done = ingle_process.run(
        "generate", "--ids", PROMPT_IDS, "--max-tokens", 1, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["ids"]) == 1


def test_ids_need_no_tokenizer(model, tmp_path):
    texts = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
    bare = link_model(model, tmp_path / "bare", without=texts)
    options = ("--ids", PROMPT_IDS, "--max-tokens", 3)
    out = ingle_process.generate(bare, *options)
    assert out["text"] is None
    assert out["ids"] == ingle_process.generate(model, *options)["ids"]


def test_logprobs_are_of_the_whole_vocabulary(model):
    out = ingle_process.generate(
        model, "--ids", PROMPT_IDS, "--max-tokens", 2, "--top-logprobs", 3
    )
    assert [entry["id"] for entry in out["logprobs"]] == out["ids"]
    for entry in out["logprobs"]:
        top = [candidate["logprob"] for candidate in entry["top"]]
        assert len(top) == 3
        assert top == sorted(top, reverse=True)
        assert entry["logprob"] == top[0] <= 0


def test_seed_reproducible(model):
    def sample(seed):
        return ingle_process.generate(
            model,
            *("--ids", PROMPT_IDS, "--max-tokens", 16, "--ignore-eos"),
            *("--temperature", 1.5, "--top-p", 0.95, "--seed", seed),
        )["ids"]

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


@pytest.mark.parametrize("ids", ["", "1,x", "-1", "49152", "1,,2"])
def test_bad_ids_are_one_clear_line(model, ids):
    done = ingle_process.run("generate", "--model", model, "--ids", ids)
    assert done.returncode > 0
    assert done.stderr.strip()


@pytest.mark.parametrize(
    "command",
    ["serve", "generate", "bench", "fit", "import", "get", "ls", "doctor"],
)
def test_every_command_has_help_with_an_example(binary, command):
    done = ingle_process.run(command, "--help")
    assert done.returncode == 0
    assert f"ingle {command}" in done.stdout


@pytest.mark.parametrize("command", ["serve", "chat", "generate", "bench", "fit"])
def test_commands_that_load_a_model_choose_how_it_runs(binary, command):
    shown = ingle_process.run(command, "--help").stdout
    for flag in ("--model", "--numerics", "--exact", "--threads", "--kv-quant"):
        assert flag in shown
    done = ingle_process.run(command, "--exact", "--numerics", "fast")
    assert done.returncode == 2
    assert "--numerics" in done.stderr


def test_answer_does_not_depend_on_threads(model):
    options = ("--ids", PROMPT_IDS, "--max-tokens", 8, "--exact")
    one, two = (
        ingle_process.generate(model, *options, "--threads", threads)["ids"]
        for threads in (1, 2)
    )
    assert one == two


def test_ingle_alone_prints_help(binary):
    done = ingle_process.run()
    assert "serve" in done.stdout + done.stderr


def test_unknown_command_fails(binary):
    assert ingle_process.run("no-such-command").returncode > 0


@pytest.mark.parametrize("command", ["ls", "doctor"])
def test_reports_come_as_json(model, command):
    done = ingle_process.run(command, "--json")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)

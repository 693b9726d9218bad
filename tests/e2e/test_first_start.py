"""What `ingle serve` says to whoever starts it for the first time."""

import json
import re
import subprocess
import time

import pytest

from ingle_process import ENVIRONMENT
from model_folder import link_model

ANSWER_SECONDS = 120
KEY_VARIABLE = "INGLE_API_KEY"
TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")


def printed_curl(server):
    deadline = time.monotonic() + 10
    while "curl" not in server.log() and time.monotonic() < deadline:
        time.sleep(0.05)
    return re.search(r"curl .*", server.log()).group()


def run_curl(server, variables=None):
    done = subprocess.run(
        ["bash", "-c", printed_curl(server)],
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
        check=False,
        env=ENVIRONMENT | (variables or {}),
    )
    return json.loads(done.stdout)


def test_first_start_of_serve_says_what_one_needs(start_server):
    server = start_server("--api-key", "secret-of-the-test")
    curl = printed_curl(server)
    log = server.log()
    assert re.search(r"ready after \d", log)
    assert f"{server.url}/v1" in log
    assert "SmolLM2-135M-Instruct" in log
    assert re.search(r"memory +[\d.]+ [MG]B .* [\d.]+ [GT]B", log)
    assert f"curl {server.url}/v1/chat/completions" in curl
    assert "Authorization: Bearer YOUR-KEY" in curl
    assert "secret-of-the-test" not in log


# What the model's folder lacks -> the field of an answer, and what it says
@pytest.mark.parametrize(
    "absent, field, said",
    [
        ((), "message", "The capital of"),
        (TEMPLATES, "text", " Paris.\n"),
        ((*TEMPLATES, "tokenizer.json"), "text", ""),
    ],
    ids=["chat", "text", "ids"],
)
def test_curl_that_serve_prints_works_as_it_stands(
    start_server, model, tmp_path, absent, field, said
):
    folder = link_model(model, tmp_path / "model", without=absent)
    # The flags hold, as the request says nothing about them.
    server = start_server(
        "--temperature", "0", "--max-tokens", "3", model=folder
    )
    answer = run_curl(server)
    [choice] = answer["choices"]
    assert choice["finish_reason"] == "length"
    made = choice[field]
    assert (made["content"] if field == "message" else made) == said
    assert answer["usage"]["completion_tokens"] == 3


def test_curl_that_serve_prints_takes_the_key_from_the_variable(start_server):
    key = {KEY_VARIABLE: "secret-of-the-test"}
    server = start_server("--max-tokens", "3", variables=key)
    assert f"Authorization: Bearer ${KEY_VARIABLE}" in printed_curl(server)
    assert "secret-of-the-test" not in server.log()
    assert run_curl(server, key)["choices"]
    assert run_curl(server)["error"]["code"] == "invalid_api_key"


def test_curl_names_no_variable_that_has_another_key(start_server):
    server = start_server(
        "--api-key", "one", variables={KEY_VARIABLE: "another"}
    )
    assert "Authorization: Bearer YOUR-KEY" in printed_curl(server)

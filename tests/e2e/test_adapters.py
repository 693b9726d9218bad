"""Adapters on the real model: mounted, chosen by requests, unmounted."""

import array
import json
import random
import struct
import sys
import urllib.error
import urllib.request

import pytest

import ingle_process

HIDDEN = 576
LAYERS = 30
RANK = 4
SCALE = 8.0

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]


def write_adapter(folder, seed):
    """Random A and B for what attention gives out, as mlx-lm writes them."""
    assert sys.byteorder == "little"
    draw = random.Random(seed)
    header, data = {}, bytearray()
    for layer in range(LAYERS):
        for part, shape in (
            ("lora_a", (HIDDEN, RANK)),
            ("lora_b", (RANK, HIDDEN)),
        ):
            values = array.array(
                "f", (draw.uniform(-0.2, 0.2) for _ in range(HIDDEN * RANK))
            )
            name = f"model.layers.{layer}.self_attn.o_proj.{part}"
            begin = len(data)
            data += values.tobytes()
            header[name] = {
                "dtype": "F32",
                "shape": shape,
                "data_offsets": [begin, len(data)],
            }
    text = json.dumps(header).encode()
    folder.mkdir(parents=True)
    (folder / "adapters.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + data
    )
    (folder / "adapter_config.json").write_text(
        json.dumps({"lora_parameters": {"rank": RANK, "scale": SCALE}})
    )


@pytest.fixture
def home(tmp_path):
    """An INGLE_HOME with adapters `one` and `two`."""
    write_adapter(tmp_path / "adapters" / "one", 1)
    write_adapter(tmp_path / "adapters" / "two", 2)
    return tmp_path


def call(server, method, path, body=None):
    """The status and the JSON of the reply."""
    request = urllib.request.Request(
        server.url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def ask(server, adapter=None):
    body = {"messages": FRANCE, "temperature": 0, "max_tokens": 16}
    if adapter is not None:
        body["adapter"] = adapter
    status, reply = call(server, "POST", "/v1/chat/completions", body)
    assert status == 200, reply
    return reply["choices"][0]["message"]["content"]


def test_adapter_is_mounted_chosen_and_unmounted(start_server, home):
    server = start_server(variables={"INGLE_HOME": str(home)})
    base = ask(server)
    status, available = call(server, "GET", "/v1/adapters/available")
    assert status == 200
    assert [each["id"] for each in available["data"]] == ["one", "two"]
    one = {"id": "a", "path": "one"}
    assert call(server, "POST", "/v1/adapters", one) == (
        200,
        {"id": "a", "mounted_layers": LAYERS, "rank": RANK, "scale": SCALE},
    )
    assert ask(server) == base
    changed = ask(server, "a")
    assert changed != base
    assert ask(server, "none") == base
    assert ask(server, "a") == changed

    status, mounted = call(server, "GET", "/v1/adapters")
    assert mounted["data"][0]["path"] == str(home / "adapters" / "one")
    assert mounted["data"][0]["size_bytes"] > LAYERS * HIDDEN * RANK * 8 - 1
    call(server, "POST", "/v1/adapters", {"id": "b", "path": "two"})
    assert ask(server, "a+b") != changed

    assert call(server, "DELETE", "/v1/adapters/a") == (
        200,
        {"id": "a", "removed_layers": LAYERS},
    )
    status, reply = call(server, "DELETE", "/v1/adapters/a")
    assert (status, reply["error"]["code"]) == (404, "adapter_not_found")
    code, error = server.error_of(
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "x"}], "adapter": "a"},
    )
    assert (code, error["param"]) == (400, "adapter")
    assert ask(server) == base


def test_paths_of_requests_stay_in_the_store(start_server, home, tmp_path):
    write_adapter(tmp_path / "elsewhere", 3)
    server = start_server(variables={"INGLE_HOME": str(home)})
    for path in (str(tmp_path / "elsewhere"), "../elsewhere", "/etc"):
        body = {"id": "x", "path": path}
        code, error = server.error_of("/v1/adapters", body)
        assert (code, error["param"]) == (400, "path")
    code, error = server.error_of("/v1/adapters", {"id": "x+y", "path": "one"})
    assert (code, error["param"]) == (400, "id")
    assert call(server, "PUT", "/v1/adapters", {})[0] == 405
    assert call(server, "GET", "/v1/adapters")[1]["data"] == []


def test_default_adapter_applied(start_server, model, home, tmp_path):
    write_adapter(tmp_path / "elsewhere", 1)
    flag = ("--adapter", f"mine={tmp_path / 'elsewhere'}")
    server = start_server(*flag, variables={"INGLE_HOME": str(home)})
    assert ask(server) == ask(server, "mine")
    assert ask(server, "none") != ask(server)

    prompt = ("--prompt", "What is the capital of France?", "--max-tokens", 16)
    base = ingle_process.generate(model, *prompt)
    assert ingle_process.generate(model, *prompt, *flag)["ids"] != base["ids"]


def test_adapter_that_does_not_fit_is_one_line(model, tmp_path):
    write_adapter(tmp_path / "small", 1)
    config = tmp_path / "small" / "adapter_config.json"
    config.write_text(json.dumps({"use_dora": True}))
    done = ingle_process.run(
        "generate", "--model", model, "--prompt", "x",
        "--adapter", f"a={tmp_path / 'small'}",
    )  # fmt: skip
    assert done.returncode != 0
    assert "use_dora asks for DoRA, which is not supported" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1

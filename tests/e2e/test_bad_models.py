"""A model folder that is not whole: one clear line, and nothing else."""

import json

import pytest

import ingle_process
from model_folder import edit_json, link_model, replace


def truncated_weights(folder):
    with open(folder / "model.safetensors", "rb") as file:
        start = file.read(1 << 20)
    replace(folder, "model.safetensors", start)


def empty_weights(folder):
    replace(folder, "model.safetensors", b"")


def missing_weights(folder):
    (folder / "model.safetensors").unlink()


def missing_shard(folder):
    weights = folder / "model.safetensors"
    with open(weights, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        names = [n for n in json.loads(file.read(length)) if n[0] != "_"]
    first = "model-00001-of-00002.safetensors"
    weights.rename(folder / first)
    places = dict.fromkeys(names, first)
    places["lm_head.weight"] = "model-00002-of-00002.safetensors"
    index = json.dumps({"metadata": {}, "weight_map": places})
    (folder / "model.safetensors.index.json").write_text(index)


def without(field):
    def remove(folder):
        edit_json(folder, "config.json", lambda config: config.pop(field))

    return remove


def unknown_architecture(folder):
    def change(config):
        config["model_type"] = "perceptron"
        config["architectures"] = ["PerceptronForCausalLM"]

    edit_json(folder, "config.json", change)


def config_of_other_size(folder):
    def change(config):
        config["hidden_size"] = 640

    edit_json(folder, "config.json", change)


def config_that_is_no_json(folder):
    replace(folder, "config.json", '{"model_type": "llama",')


def missing_config(folder):
    (folder / "config.json").unlink()


def broken_template(folder):
    if (folder / "tokenizer_config.json").exists():
        edit_json(
            folder,
            "tokenizer_config.json",
            lambda config: config.pop("chat_template", None),
        )
    replace(folder, "chat_template.jinja", "{% for m in messages %}{{ m }}")


def broken_tokenizer(folder):
    replace(folder, "tokenizer.json", '{"version": "1.0", "model": {}}')


# What was done to the folder; the file that the line names, and a word of the
# cause.
CASES = {
    "truncated weights": (truncated_weights, "model.safetensors", "cut short"),
    "empty weights": (empty_weights, "model.safetensors", "bytes"),
    "missing weights": (missing_weights, "model.safetensors", "neither"),
    "missing shard": (
        missing_shard,
        "model-00002-of-00002.safetensors",
        "missing",
    ),
    "no hidden_size": (without("hidden_size"), "config.json", "hidden_size"),
    "no layers": (
        without("num_hidden_layers"),
        "config.json",
        "num_hidden_layers",
    ),
    "no heads": (
        without("num_attention_heads"),
        "config.json",
        "num_attention_heads",
    ),
    "no intermediate_size": (
        without("intermediate_size"),
        "config.json",
        "intermediate_size",
    ),
    "no vocab_size": (without("vocab_size"), "config.json", "vocab_size"),
    "no model_type": (without("model_type"), "config.json", "model_type"),
    "unknown architecture": (
        unknown_architecture,
        "config.json",
        "perceptron",
    ),
    "other size": (config_of_other_size, "model.safetensors", "shape"),
    "config that is no JSON": (config_that_is_no_json, "config.json", "JSON"),
    "missing config": (missing_config, "config.json", "No such file"),
    "broken template": (broken_template, "chat_template.jinja", "line"),
    "broken tokenizer": (broken_tokenizer, "tokenizer.json", ""),
}
# One of each kind: serving loads with the same code.
SERVED = (
    "truncated weights",
    "missing shard",
    "no layers",
    "unknown architecture",
    "broken template",
)


def each(names):
    return pytest.mark.parametrize(
        "broken, file, cause",
        [CASES[name] for name in names],
        ids=names,
        indirect=["broken"],
    )


@pytest.fixture
def broken(model, tmp_path, request):
    folder = link_model(model, tmp_path / "broken")
    request.param(folder)
    return folder


def check_line(line, folder, file, cause):
    assert file in line
    assert cause in line
    told = line.replace(str(folder), "").replace(file, "")
    assert len(told.split()) >= 3, f"no cause: {line}"


@each(CASES)
def test_generate_fails_with_one_clear_line(broken, file, cause):
    before = sorted(broken.iterdir())
    done = ingle_process.run(
        *("generate", "--model", broken, "--prompt", "x", "--max-tokens", 1)
    )
    assert done.returncode > 0, f"{done.returncode}: {done.stderr}"
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    check_line(lines[0], broken, file, cause)
    assert sorted(broken.iterdir()) == before


@each(SERVED)
def test_serve_fails_with_one_clear_line(broken, file, cause):
    done = ingle_process.run("serve", "--model", broken, "--port", 0)
    assert done.returncode > 0, f"{done.returncode}: {done.stderr}"
    check_line(done.stderr.strip().splitlines()[-1], broken, file, cause)


@pytest.mark.parametrize("command", ["generate", "serve"])
def test_no_such_folder(binary, tmp_path, command):
    more = ("--prompt", "x") if command == "generate" else ("--port", 0)
    done = ingle_process.run(command, "--model", tmp_path / "nowhere", *more)
    assert done.returncode > 0
    assert "nowhere" in done.stderr.strip().splitlines()[-1]

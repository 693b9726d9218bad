"""Makes tests/data/tiny_lora.json.

    python tiny_lora_golden.py

Greedy tokens and logits of the tiny llama (tests/data/README.md), dense and
quantised, in mlx-lm with an adapter as it writes them, f32.
"""

import json
import pathlib
import tempfile

import numpy as np
from mlx_lm.tuner.utils import load_adapters
from safetensors.numpy import save_file

import tiny_golden
import tiny_llama
import truth

LAYERS = (1, 2)  # the first has none
RANK = 4
SCALE = 2.0
EXPONENTS = {"lora_a": 0, "lora_b": -2}
LENGTHS = (5, 37)

CONFIG = {
    "fine_tune_type": "lora",
    "num_layers": len(LAYERS),
    "lora_parameters": {
        "rank": RANK,
        "scale": SCALE,
        "dropout": 0.0,
        "keys": [
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj",
            "self_attn.o_proj",
            "mlp.gate_proj",
            "mlp.up_proj",
            "mlp.down_proj",
        ],
    },
}


def tensors():
    """[name, shape, exponent] of each, drawn by its name."""
    for module, (rows, columns) in tiny_llama.linear_shapes():
        if int(module.split(".")[2]) in LAYERS:
            for part, shape in (
                ("lora_a", [columns, RANK]),
                ("lora_b", [RANK, rows]),
            ):
                yield [f"{module}.{part}", shape, EXPONENTS[part]]


def write_adapter(folder):
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG))
    drawn = {
        name: (tiny_llama.centred(name, shape) * 2.0**exponent).astype(
            np.float32
        )
        for name, shape, exponent in tensors()
    }
    save_file(drawn, folder / "adapters.safetensors")


def make_case(is_quantised):
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        tiny_llama.write(folder / "model", True, is_quantised)
        write_adapter(folder / "adapter")
        model = truth.load(folder / "model", as_stored=True)
        load_adapters(model, str(folder / "adapter"))
    answers = [tiny_golden.answer(model, length) for length in LENGTHS]
    print([answer["min_gap"] for answer in answers], flush=True)
    return {
        "name": "4bit" if is_quantised else "dense",
        "quantised": is_quantised,
        "adapter_config": CONFIG,
        "adapter": list(tensors()),
        "answers": answers,
    }


def main():
    tiny_golden.write_cases("tiny_lora", [make_case(False), make_case(True)])


if __name__ == "__main__":
    main()

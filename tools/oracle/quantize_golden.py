"""Makes tests/data/quantize.json.

    python quantize_golden.py

Digests of what mlx-lm's convert makes of tiny models (tiny_families.py) whose
weights are plain. src/model/quantized_folder_test.cpp makes the same models and
quantises them with `quantize_folder()`.
"""

import importlib
import pathlib
import tempfile

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_config, load_model

import tiny_families
import tiny_gemma4
import tiny_golden
import tiny_hybrid
import tiny_moe
import truth

GOLDEN = tiny_golden.GOLDEN.with_name("quantize.json")
# Family, type, bits, group size. Tiny models' rows are 64 or 128 wide, some of
# gemma4_text_published's experts 96.
CASES = (
    ("qwen3", "bfloat16", 4, 64),
    ("gemma", "float16", 4, 32),
    ("starcoder2", "float32", 8, 64),
    ("phi3", None, 3, 32),
    ("granite", "bfloat16", 4, 64),
    ("granite", None, 2, 128),
    ("glm4", "float16", 5, 64),
    ("olmo2", "bfloat16", 6, 32),
    ("gemma4_text", "bfloat16", 4, 32),
    ("qwen3_moe_mixed", "bfloat16", 4, 32),
    ("gemma4_text_published", "bfloat16", 6, 64),
    ("qwen3_5", "bfloat16", 4, 32),
)


# The package has a function of that name.
convert = importlib.import_module("mlx_lm.convert")


class NoTokenizer:
    def save_pretrained(self, folder):
        pass


def converted(source, target, bits, group_size):
    """By the command itself, but for the tokenizer, of which there is none."""

    def load(path, **_):
        path = pathlib.Path(path)
        model, config = load_model(path, lazy=True)
        return model, NoTokenizer(), config

    convert.load = load
    convert.convert(
        str(source), str(target), True, q_group_size=group_size, q_bits=bits
    )
    weights = mx.load(str(target / "model.safetensors"))
    return weights, load_config(target)


def digest_of(name, array):
    if array.dtype in (mx.bfloat16, mx.float16):
        array = array.view(mx.uint16)
    return tiny_golden.digest({name: np.array(array)})


def published_gemma4():
    """Experts in two tensors, without the parts that see and hear."""
    text = tiny_gemma4.MIXTURE
    published = tiny_gemma4.as_published(tiny_gemma4.parameters(text))
    senses = ("vision", "audio")
    tensors = [t for t in published if not any(s in t[0] for s in senses)]
    yield "gemma4_text_published", text, tensors


def plain_model(family):
    for models in (
        tiny_gemma4.models(),
        tiny_hybrid.models(),
        tiny_moe.models(),
        published_gemma4(),
    ):
        for name, config, parameters in models:
            if name == family:
                return config, parameters
    config = tiny_families.config_of(family, False)
    return config, tiny_families.parameters(config)


def with_dtype(config, dtype):
    """As older and as newer configs have it."""
    if "text_config" in config:
        text = {**config["text_config"], "dtype": dtype}
        return {**config, "text_config": text}
    return {**config, "torch_dtype": dtype}


def make_case(family, dtype, bits, group_size):
    config, parameters = plain_model(family)
    if dtype:
        config = with_dtype(config, dtype)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "source"
        source.mkdir()
        tiny_moe.write(source, config, parameters)
        weights, made = converted(
            source, pathlib.Path(folder) / "target", bits, group_size
        )
        digests = {
            name: digest_of(name, weights[name]) for name in sorted(weights)
        }
    print(family, dtype, bits, group_size, len(digests), flush=True)
    return {
        "name": f"{family}_{dtype or 'f32'}_{bits}bit_by_{group_size}",
        "config": config,
        "tensors": parameters,
        "bits": bits,
        "group_size": group_size,
        "quantization": made["quantization"],
        "digests": digests,
    }


def main():
    header = {
        "made_by": "tools/oracle/quantize_golden.py",
        "command": "python quantize_golden.py",
        **truth.versions(),
    }
    truth.write_golden(GOLDEN, header, [make_case(*case) for case in CASES])


if __name__ == "__main__":
    main()

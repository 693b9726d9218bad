"""Tiny models of recurrent and attention layers, drawn by name.

As in tiny_families.py: what stands in tests/data/tiny_hybrid.json is all that
src/model/testing/tiny_model.cpp needs to make the same files.
"""

import json
import pathlib

import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes
from safetensors.numpy import save_file

import tiny_families
import tiny_llama
from tiny_llama import GROUP, centred

TEXT = {
    **tiny_families.COMMON,
    "model_type": "qwen3_5_text",
    "num_hidden_layers": 4,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
    "attn_output_gate": True,
    "hidden_act": "silu",
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e4,
        "partial_rotary_factor": 0.25,
        "mrope_interleaved": True,
        "mrope_section": [2, 1, 1],
    },
}
FORMS = {
    **tiny_llama.EXPONENTS,
    "in_proj_qkv": 0,
    "in_proj_z": 0,
    "in_proj_b": 0,
    "in_proj_a": 0,
    "out_proj": 0,
    "conv1d": 1,
}
# Of these the published files hold w where 1 + w multiplies.
NORMS = (
    "input_layernorm",
    "post_attention_layernorm",
    "model.norm",
    "q_norm",
    "k_norm",
)


def form_of(name):
    """How a tensor is drawn: 2**exponent, or a norm about 1."""
    if name.endswith(("A_log", "dt_bias")):
        return 1
    if name.endswith(".bias"):
        return -1
    module = name.split(".")[-2]
    return "norm" if "norm" in module else FORMS[module]


def parameters(config):
    """[name, shape, form] of each tensor that mlx-lm's class has."""
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(json.loads(json.dumps(config))))
    return [
        [name, list(value.shape), form_of(name)]
        for name, value in sorted(tree_flatten(model.parameters()))
    ]


def as_published(parameters):
    """The names, shapes and norms of files that no converter has seen."""
    result = [["mtp.norm.weight", [64], -2]]
    if any(name.startswith("language_model.") for name, _, _ in parameters):
        result.append(["model.visual.patch_embed.proj.weight", [8, 8], 0])
    for name, shape, form in parameters:
        module = name.removesuffix(".weight")
        if name.endswith("conv1d.weight"):
            shape = [shape[0], shape[2], shape[1]]
        if module.endswith(NORMS):
            form = -2
        name = name.replace("language_model.model.", "model.language_model.")
        name = name.removeprefix("language_model.")
        result.append([name, shape, form])
    return sorted(result)


def by_themselves(parameters):
    return [
        [name.removeprefix("language_model."), shape, form]
        for name, shape, form in parameters
    ]


def quantization():
    group = {"group_size": GROUP, "mode": "affine"}
    return {
        **group,
        "bits": 4,
        "language_model.model.embed_tokens": {**group, "bits": 8},
    }


def models():
    """(name, config, tensors) of each."""
    nested = {"model_type": "qwen3_5", "text_config": TEXT}
    tensors = parameters(nested)
    yield "qwen3_5", nested, tensors
    yield "qwen3_5_as_published", nested, as_published(tensors)
    # Products of quantised matrices need whole groups of inputs.
    text = {**TEXT, "linear_value_head_dim": 32, "tie_word_embeddings": True}
    nested = {"model_type": "qwen3_5", "text_config": text}
    tensors = parameters(nested)
    yield "qwen3_5_4bit", {**nested, "quantization": quantization()}, tensors
    text = {
        **TEXT,
        "attention_bias": True,
        "linear_num_key_heads": 3,
        "linear_num_value_heads": 3,
        "linear_conv_kernel_dim": 3,
        "full_attention_interval": 2,
    }
    tensors = parameters({**text, "model_type": "qwen3_5"})
    yield "qwen3_5_text", text, by_themselves(tensors)


def draw(parameters, is_quantised):
    result = {}
    for name, shape, form in parameters:
        if form == "norm":
            value = 1.0 + 0.25 * centred(name, shape)
        elif len(shape) == 2 and is_quantised:
            module = name.removesuffix(".weight")
            bits = 8 if module.endswith("embed_tokens") else 4
            result.update(tiny_llama.quantised(module, *shape, bits, form))
            continue
        else:
            value = centred(name, shape) * 2.0**form
        result[name] = value.astype(np.float32)
    return result


def write(folder, config, parameters):
    """For mlx-lm, which knows the type of both forms by one name."""
    folder = pathlib.Path(folder)
    known = {**config, "model_type": "qwen3_5"}
    (folder / "config.json").write_text(json.dumps(known))
    weights = draw(parameters, "quantization" in config)
    save_file(weights, folder / "model.safetensors")
    return weights

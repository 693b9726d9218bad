"""Tiny models of each family, with weights that are drawn by name.

A model is the config below and a list of tensors; both stand in
tests/data/tiny_families.json, so that src/model/testing/tiny_model.cpp makes
the same files without Python (tests/data/README.md has the draws).
"""

import json
import pathlib

import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes
from safetensors.numpy import save_file

import tiny_llama
from tiny_llama import GROUP, centred, draws

COMMON = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 288,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": 257,
    "eos_token_id": 258,
}
FAMILIES = {
    "gemma2": {
        "head_dim": 32,
        "query_pre_attn_scalar": 32,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 10.0,
        "hidden_activation": "gelu_pytorch_tanh",
    },
    "gemma3_text": {
        "num_hidden_layers": 4,
        "head_dim": 32,
        "query_pre_attn_scalar": 32,
        "sliding_window": 24,
        "sliding_window_pattern": 3,
        "hidden_activation": "gelu_pytorch_tanh",
    },
    "granite": {
        "rope_theta": 1e4,
        "embedding_multiplier": 4.0,
        "attention_multiplier": 0.2,
        "residual_multiplier": 0.5,
        "logits_scaling": 0.5,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "olmo2": {"rope_theta": 1e4},
    "mistral": {
        "rope_theta": 1e4,
        "head_dim": 32,
        "layer_types": [
            "sliding_attention",
            "full_attention",
            "sliding_attention",
        ],
        "sliding_window": 24,
    },
    "qwen2": {"rope_theta": 1e6, "tie_word_embeddings": True},
    "qwen3": {"rope_theta": 1e6, "head_dim": 32, "tie_word_embeddings": True},
    "smollm3": {
        "rope_theta": 1e5,
        "no_rope_layers": [1, 0, 1],
        "attention_bias": True,
        "mlp_bias": True,
    },
}


def config_of(family, is_quantised):
    config = {"model_type": family, **COMMON, **FAMILIES[family]}
    if is_quantised:
        group = {"group_size": GROUP, "mode": "affine"}
        config["quantization"] = {
            **group,
            "bits": 4,
            "model.embed_tokens": {**group, "bits": 8},
        }
    return config


def form_of(name, shape):
    """How a tensor is drawn: 2**exponent, or a norm about 1."""
    module = name.split(".")[-2]
    if "norm" in module:
        return "norm"
    if name.endswith(".bias"):
        return -1
    assert len(shape) == 2, name
    return tiny_llama.EXPONENTS[module]


def parameters(config):
    """[name, shape, form] of each tensor that mlx-lm's class has."""
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    return [
        [name, list(value.shape), form_of(name, value.shape)]
        for name, value in sorted(tree_flatten(model.parameters()))
    ]


def tensors(parameters, is_quantised):
    result = {}
    for name, shape, form in parameters:
        if form == "norm":
            value = 1.0 + 0.25 * centred(name, shape)
        elif len(shape) == 2 and is_quantised:
            module = name.removesuffix(".weight")
            bits = 8 if module == "model.embed_tokens" else 4
            result.update(tiny_llama.quantised(module, *shape, bits))
            continue
        else:
            value = centred(name, shape) * 2.0**form
        result[name] = value.astype(np.float32)
    return result


def write(folder, config, parameters):
    folder = pathlib.Path(folder)
    (folder / "config.json").write_text(json.dumps(config))
    weights = tensors(parameters, "quantization" in config)
    save_file(weights, folder / "model.safetensors")
    return weights

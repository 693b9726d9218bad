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
# As many as half of what turns of a head.
LONG_FACTORS = [1.0, 1.5, 2.0, 3.5]
YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
FAMILIES = {
    # So few layers, here and in phi3: norms of about 2 and a rope that makes
    # scores larger make sharp attention, which makes much of little.
    "gemma": {
        "num_hidden_layers": 2,
        "head_dim": 32,
        "hidden_activation": "gelu_pytorch_tanh",
    },
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
    "glm4": {
        "rope_theta": 1e4,
        "head_dim": 32,
        "partial_rotary_factor": 0.5,
        "attention_bias": True,
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
    "llama": {  # as MiniCPM5 has its heads
        "rope_theta": 1e4,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5},
    },
    "ministral3": {
        "head_dim": 32,
        "rope_parameters": {
            **YARN,
            "rope_theta": 1e4,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
        "layer_types": [
            "full_attention",
            "sliding_attention",
            "full_attention",
        ],
        "sliding_window": 24,
    },
    "olmo2": {"rope_theta": 1e4},
    "olmo3": {
        "num_hidden_layers": 4,
        "rope_theta": 1e4,
        "sliding_window": 24,
        "rope_scaling": YARN,
    },
    "phi3": {
        "num_hidden_layers": 2,
        "rope_theta": 1e4,
        "partial_rotary_factor": 0.5,
        "original_max_position_embeddings": 64,
        "rope_scaling": {
            "type": "longrope",
            "short_factor": [1.0] * len(LONG_FACTORS),
            "long_factor": LONG_FACTORS,
        },
    },
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
    "starcoder2": {"rope_theta": 1e5, "norm_epsilon": 1e-5},
}


# Beside a part that sees: the family of the part that reads and writes.
WRAPPED = {"gemma3": "gemma3_text", "mistral3": "ministral3"}


def wrapped_config_of(wrapper):
    """Without what its authors' files leave out."""
    text = config_of(WRAPPED[wrapper], False)
    left_out = ("rms_norm_eps", "vocab_size") if wrapper == "gemma3" else ()
    return {
        "model_type": wrapper,
        "text_config": {k: v for k, v in text.items() if k not in left_out},
        "vocab_size": text["vocab_size"],
    }


def seeing_parts(parameters):
    """With tensors that are of no use to the part that reads and writes."""
    return sorted(
        [
            *parameters,
            ["multi_modal_projector.linear.weight", [8, 8], 0],
            ["vision_tower.patches.weight", [8, 8], 0],
        ]
    )


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
    if name.endswith(".bias"):
        return -1
    if "norm" in module:
        return "norm"
    assert len(shape) == 2, name
    return tiny_llama.EXPONENTS[module]


def parameters(config):
    """[name, shape, form] of each tensor that mlx-lm's class has."""
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(json.loads(json.dumps(config))))
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

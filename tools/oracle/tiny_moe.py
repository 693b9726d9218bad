"""Tiny mixtures of experts, drawn by name.

As in tiny_families.py: what stands in tests/data/tiny_moe.json is all that
src/model/testing/tiny_model.cpp needs to make the same files.
"""

import json
import pathlib

import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes
from safetensors.numpy import save_file

import tiny_families
import tiny_hybrid
import tiny_llama
from tiny_llama import GROUP, centred, draws

QWEN3_MOE = {
    **tiny_families.COMMON,
    "model_type": "qwen3_moe",
    "head_dim": 32,
    "rope_theta": 1e6,
    "hidden_act": "silu",
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 96,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
# Beside the experts an expert that all tokens have, and recurrent layers.
QWEN3_NEXT = {
    **{
        key: value
        for key, value in tiny_hybrid.TEXT.items()
        if key not in ("attn_output_gate", "rope_parameters")
    },
    "model_type": "qwen3_next",
    "rope_theta": 1e4,
    "partial_rotary_factor": 0.25,
    "linear_value_head_dim": 32,
    "full_attention_interval": 2,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 96,
    "shared_expert_intermediate_size": 64,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
QWEN3_5_MOE = {
    **{
        key: value
        for key, value in tiny_hybrid.TEXT.items()
        if key != "intermediate_size"
    },
    "model_type": "qwen3_5_moe_text",
    "linear_value_head_dim": 32,
    "num_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 96,
}
# Routers far apart, so that rounding seldom picks another expert.
FORMS = {
    **tiny_hybrid.FORMS,
    "gate": 1,
    "shared_expert_gate": 1,
    "in_proj_qkvz": 0,
    "in_proj_ba": 0,
}


def form_of(name):
    """How a tensor is drawn: 2**exponent, or a norm about 1."""
    if name.endswith(("A_log", "dt_bias")):
        return 1
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
    """Each expert's matrices by themselves."""
    result = []
    for name, shape, form in parameters:
        if ".switch_mlp." not in name:
            result.append([name, shape, form])
            continue
        for expert in range(shape[0]):
            own = name.replace("switch_mlp", f"experts.{expert}")
            result.append([own, shape[1:], form])
    return sorted(result)


def fused(parameters):
    """All experts' matrices in two tensors, of which one has two halves."""
    result = []
    for name, shape, form in parameters:
        own, _, matrix = name.removesuffix(".weight").partition("switch_mlp.")
        if matrix == "gate_proj":
            both = [shape[0], 2 * shape[1], shape[2]]
            result.append([own + "experts.gate_up_proj", both, form])
        elif matrix == "down_proj":
            result.append([own + "experts.down_proj", shape, form])
        elif matrix == "":
            result.append([name, shape, form])
    return sorted(result)


def bits_of(module):
    wide = (
        "embed_tokens",
        ".mlp.gate",
        ".mlp.router",
        ".router.proj",
        ".shared_expert_gate",
    )
    return 8 if module.endswith(wide) else 4


def quantization(parameters):
    group = {"group_size": GROUP, "mode": "affine"}
    modules = [name.removesuffix(".weight") for name, _, _ in parameters]
    return {
        **group,
        "bits": 4,
        **{
            module: {**group, "bits": 8}
            for module in modules
            if bits_of(module) == 8
        },
    }


def models():
    """(name, config, tensors) of each."""
    tensors = parameters(QWEN3_MOE)
    yield "qwen3_moe_as_published", QWEN3_MOE, as_published(tensors)
    quantised = {**QWEN3_MOE, "quantization": quantization(tensors)}
    yield "qwen3_moe_4bit", quantised, tensors
    mixed = {
        **QWEN3_MOE,
        "num_hidden_layers": 5,
        "num_experts": 12,
        "num_experts_per_tok": 3,
        "norm_topk_prob": False,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [3],
        "tie_word_embeddings": True,
    }
    yield "qwen3_moe_mixed", mixed, parameters(mixed)
    yield from shared_models()


def shared_models():
    tensors = parameters(QWEN3_NEXT)
    # As published: the form of the recurrent layers, and that of the experts.
    published = as_published(tiny_hybrid.as_published(tensors))
    yield "qwen3_next_as_published", QWEN3_NEXT, published
    quantised = {**QWEN3_NEXT, "quantization": quantization(tensors)}
    yield "qwen3_next_4bit", quantised, tensors
    mixed = {**QWEN3_NEXT, "mlp_only_layers": [2], "norm_topk_prob": False}
    yield "qwen3_next_mixed", mixed, parameters(mixed)
    nested = {"model_type": "qwen3_5_moe", "text_config": QWEN3_5_MOE}
    tensors = parameters(nested)
    published = fused(tiny_hybrid.as_published(tensors))
    yield "qwen3_5_moe_as_published", nested, published
    quantised = {**nested, "quantization": quantization(tensors)}
    yield "qwen3_5_moe_4bit", quantised, tensors


def is_matrix(name, shape):
    stacked = (".switch_mlp.", ".experts.")
    return name.endswith(".weight") and (
        len(shape) == 2 or any(module in name for module in stacked)
    )


# MXFP4 as a file has it: values of 4 bits, and exponents of about -4 plus 127.
PACKED = {
    "words": lambda name, shape: top_bits(name, shape, 32, np.uint32),
    "bytes": lambda name, shape: top_bits(name, shape, 8, np.uint8),
    "exponents": lambda name, shape: (
        122 + top_bits(name, shape, 4, np.uint8) % 3
    ),
}


def top_bits(name, shape, count, dtype):
    u = draws(name, int(np.prod(shape))) >> np.uint64(64 - count)
    return u.astype(dtype).reshape(shape)


def draw(parameters, is_quantised):
    result = {}
    for name, shape, form in parameters:
        if form == "norm":
            value = 1.0 + 0.25 * centred(name, shape)
        elif form in PACKED:
            result[name] = PACKED[form](name, shape)
            continue
        elif is_quantised and is_matrix(name, shape):
            module = name.removesuffix(".weight")
            rows = int(np.prod(shape[:-1]))
            parts = tiny_llama.quantised(
                module, rows, shape[-1], bits_of(module), form
            )
            for part, values in parts.items():
                result[part] = values.reshape(*shape[:-1], -1)
            continue
        else:
            value = centred(name, shape) * 2.0**form
        result[name] = value.astype(np.float32)
    return result


def write(folder, config, parameters):
    folder = pathlib.Path(folder)
    (folder / "config.json").write_text(json.dumps(config))
    weights = draw(parameters, "quantization" in config)
    save_file(weights, folder / "model.safetensors")
    return weights

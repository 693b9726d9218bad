"""Tiny models of gpt-oss, drawn by name.

As in tiny_moe.py: what stands in tests/data/tiny_gpt_oss.json is all that
src/model/testing/tiny_model.cpp needs to make the same files.
"""

from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes

import tiny_families
import tiny_moe
from tiny_llama import GROUP

GPT_OSS = {
    **tiny_families.COMMON,
    "model_type": "gpt_oss",
    "num_hidden_layers": 4,
    "head_dim": 32,
    "intermediate_size": 96,
    "rope_theta": 1e4,
    "rope_scaling": {
        **tiny_families.YARN,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
    },
    "hidden_act": "silu",
    "attention_bias": True,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "swiglu_limit": 7.0,
    "sliding_window": 24,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
}
MXFP4 = {"group_size": GROUP, "bits": 4, "mode": "mxfp4"}
# Scores are as large as the sinks.
FORMS = {**tiny_moe.FORMS, "q_proj": 0, "k_proj": 0, "router": 1}
SINKS = 5
# Past the limit of gates, and of what they multiply, here and there.
EXPERT_BIASES = {"gate_proj": 3, "up_proj": 3, "down_proj": 0}


def form_of(name):
    """How a tensor is drawn: 2**exponent, or a norm about 1."""
    module, part = name.split(".")[-2:]
    if part == "sinks":
        return SINKS
    if "norm" in module:
        return "norm"
    if part == "bias":
        return EXPERT_BIASES[module] if ".experts." in name else -1
    return FORMS[module]


def parameters(config):
    """[name, shape, form] of each tensor that mlx-lm's class has."""
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    return [
        [name, list(value.shape), form_of(name)]
        for name, value in sorted(tree_flatten(model.parameters()))
    ]


def is_expert(name):
    return ".experts." in name and name.endswith(".weight")


def is_matrix_but_of_router(name):
    others = ("norm.weight", "router.weight")
    return name.endswith(".weight") and not name.endswith(others)


def in_mxfp4(parameters, is_chosen):
    """With these as mlx-lm's converter leaves them."""
    result = []
    for name, shape, form in parameters:
        if not is_chosen(name):
            result.append([name, shape, form])
            continue
        *rows, columns = shape
        scales = name.replace(".weight", ".scales")
        result.append([name, [*rows, columns // 8], "words"])
        result.append([scales, [*rows, columns // GROUP], "exponents"])
    return sorted(result)


def as_published(parameters):
    """Gates and what they multiply row by row, in bytes."""
    result = []
    for name, shape, form in parameters:
        if ".experts." not in name:
            result.append([name, shape, form])
            continue
        if ".up_proj." in name:
            continue  # as its gate
        experts, rows, *columns = shape
        if ".gate_proj." in name:
            name = name.replace("gate_proj", "gate_up_proj")
            rows *= 2
        if name.endswith(".bias"):
            name = name.replace(".bias", "_bias")
            result.append([name, [experts, rows], form])
            continue
        name = name.removesuffix(".weight")
        groups = [experts, rows, columns[0] // GROUP]
        result.append([name + "_blocks", [*groups, GROUP // 2], "bytes"])
        result.append([name + "_scales", groups, "exponents"])
    return sorted(result)


def models():
    """(name, config, tensors) of each."""
    tensors = parameters(GPT_OSS)
    yield "gpt_oss", GPT_OSS, tensors
    quantised = {**GPT_OSS, "quantization": tiny_moe.quantization(tensors)}
    yield "gpt_oss_4bit", quantised, tensors
    affine = tiny_moe.quantization(tensors)
    weights = [name for name, _, _ in tensors if name.endswith(".weight")]
    modules = [name.removesuffix(".weight") for name in weights]
    experts = {module: MXFP4 for module in modules if ".experts." in module}
    mixed = {**GPT_OSS, "quantization": {**affine, **experts}}
    yield "gpt_oss_mxfp4", mixed, in_mxfp4(tensors, is_expert)
    routers = {
        module: affine[module] for module in modules if "router" in module
    }
    everywhere = {**GPT_OSS, "quantization": {**MXFP4, **routers}}
    matrices = in_mxfp4(tensors, is_matrix_but_of_router)
    yield "gpt_oss_mxfp4_everywhere", everywhere, matrices
    published = {
        **GPT_OSS,
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn"],
        },
    }
    yield "gpt_oss_as_published", published, as_published(tensors)

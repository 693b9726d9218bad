"""Tiny models of gemma4's shapes, drawn by name.

As in tiny_moe.py, which draws them: what stands in tests/data/tiny_gemma4.json is all that
src/model/testing/tiny_model.cpp needs to make the same files.
"""

import json

from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes

import tiny_families
import tiny_llama
import tiny_moe

SLIDING, FULL = "sliding_attention", "full_attention"
TEXT = {
    **tiny_families.COMMON,
    "model_type": "gemma4_text",
    "tie_word_embeddings": True,
    "hidden_activation": "gelu_pytorch_tanh",
    "head_dim": 32,
    "global_head_dim": 64,
    "sliding_window": 24,
    "num_kv_shared_layers": 0,
    "hidden_size_per_layer_input": 0,
    "final_logit_softcapping": 30.0,
    "rope_parameters": {
        SLIDING: {"rope_type": "default", "rope_theta": 1e4},
        FULL: {
            "rope_type": "proportional",
            "rope_theta": 1e6,
            "partial_rotary_factor": 0.25,
        },
    },
}
# With layers that attend to others' keys, and inputs of each layer.
SMALL = {
    **TEXT,
    "num_hidden_layers": 8,
    "layer_types": [SLIDING, SLIDING, FULL, SLIDING, FULL]
    + [SLIDING, FULL, SLIDING],
    "num_kv_shared_layers": 3,
    "use_double_wide_mlp": True,
    "hidden_size_per_layer_input": 32,
    "vocab_size_per_layer_input": 288,
    "final_logit_softcapping": 2.0,
}
# Whose full layers' values are their keys.
LARGE = {
    **TEXT,
    "num_hidden_layers": 4,
    "layer_types": [SLIDING, FULL, SLIDING, FULL],
    "attention_k_eq_v": True,
    "num_global_key_value_heads": 1,
}
MIXTURE = {
    **LARGE,
    "num_hidden_layers": 3,
    "layer_types": [SLIDING, SLIDING, FULL],
    "enable_moe_block": True,
    "num_experts": 8,
    "top_k_experts": 2,
    "moe_intermediate_size": 96,
}
FORMS = {
    **tiny_llama.EXPONENTS,
    "embed_tokens": -2,
    "embed_tokens_per_layer": 0,
    "per_layer_model_projection": 0,
    "per_layer_input_gate": 0,
    "per_layer_projection": 0,
    # A router's, whose inputs are small: far apart, as in tiny_moe.py.
    "proj": 4,
    # What layers add is large against the embedding, which is the head, too:
    # else a model echoes its input.
    "post_attention_layernorm": 3,
    "post_feedforward_layernorm": 3,
    # Scores have no scale but these: attention that is not too sharp.
    "q_norm": 0,
    "k_norm": 1,
}


def form_of(name):
    """How a tensor is drawn: 2**exponent, or a norm about 1."""
    if not name.endswith(".weight"):
        return "norm"  # scales of a router and of a layer
    module = name.split(".")[-2]
    if module in FORMS:
        return FORMS[module]
    assert "norm" in module, name
    return "norm"


def parameters(config):
    """[name, shape, form] of each tensor that mlx-lm's class has."""
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(json.loads(json.dumps(config))))
    return [
        [name, list(value.shape), form_of(name)]
        for name, value in sorted(tree_flatten(model.parameters()))
    ]


def as_published(parameters):
    """The names and shapes of files that no converter has seen: experts' gates
    and what they multiply are one, there are parts that see and hear, and keys
    of layers that attend to others'."""
    result = [
        ["model.vision_tower.patch_embedder.input_proj.weight", [8, 8], 0],
        ["model.embed_vision.embedding_projection.weight", [8, 8], 0],
        ["model.audio_tower.output_proj.weight", [8, 8], 0],
        ["model.embed_audio.embedding_projection.weight", [8, 8], 0],
    ]
    if any(".layers.7." in name for name, _, _ in parameters):
        path = "model.language_model.layers.7.self_attn."
        result += [
            [path + "k_norm.weight", [32], 1],
            [path + "k_proj.weight", [64, 64], 1],
            [path + "v_proj.weight", [64, 64], 0],
        ]
    for name, shape, form in parameters:
        name = name.replace("language_model.model.", "model.language_model.")
        if ".switch_glu.up_proj" in name:
            continue
        if ".switch_glu.gate_proj" in name:
            name = name.replace("gate_proj", "gate_up_proj")
            shape = [shape[0], 2 * shape[1], shape[2]]
        if ".switch_glu." in name:
            name = name.replace("switch_glu.", "").removesuffix(".weight")
        result.append([name, shape, form])
    return sorted(result)


def nested(text):
    return {"model_type": "gemma4", "vocab_size": 288, "text_config": text}


def models():
    """(name, config, tensors) of each."""
    for name, text in (("e4b", SMALL), ("12b", LARGE), ("26b", MIXTURE)):
        config = nested(text)
        tensors = parameters(config)
        yield f"gemma4_{name}", config, as_published(tensors)
        quantised = {**config, "quantization": tiny_moe.quantization(tensors)}
        yield f"gemma4_{name}_4bit", quantised, tensors
    # By itself, with as many heads of keys in each layer, and no cap.
    text = {
        **SMALL,
        "num_kv_shared_layers": 2,
        "use_double_wide_mlp": False,
        "final_logit_softcapping": None,
    }
    yield "gemma4_text", text, parameters(text)

"""Writes the tiny llama model of tests/data/README.md, byte for byte.

    python tiny_llama.py OUT_DIR [--untied] [--quantised]

src/model/testing/tiny_llama.cpp writes the same files without Python; the
digests in tests/data/tiny_llama.json hold the two together.
"""

import argparse
import json
import pathlib

import numpy as np
from safetensors.numpy import save_file

VOCAB = 288
HIDDEN = 64
LAYERS = 3
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 16
MLP = 128
CONTEXT = 512
GROUP = 32
BOS, EOS = 257, 258

# Weights are uniform in +-2**exponent / 2. The embedding is small against
# what the layers add, so that a tied head does not echo its input.
EXPONENTS = {
    "embed_tokens": -1,
    "q_proj": 1,
    "k_proj": 1,
    "v_proj": 0,
    "o_proj": 0,
    "gate_proj": 0,
    "up_proj": 0,
    "down_proj": 0,
    "lm_head": 0,
    # Of other families (tiny_families.py).
    "qkv_proj": 1,
    "gate_up_proj": 0,
    "c_fc": 0,
    "c_proj": 0,
}


def draws(name, count):
    """`count` draws of SplitMix64 seeded with the FNV-1a-64 of `name`."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    step = np.uint64(0x9E3779B97F4A7C15)
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * step
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def centred(name, shape):
    """Uniform in [-0.5, 0.5), in steps of 2**-24."""
    u = draws(name, int(np.prod(shape))) >> np.uint64(40)
    return (u.astype(np.float64) / 2**24 - 0.5).reshape(shape)


def norm(name):
    return (1.0 + 0.25 * centred(name, (HIDDEN,))).astype(np.float32)


def dense(module, rows, columns):
    exponent = EXPONENTS[module.rsplit(".", 1)[-1]]
    name = module + ".weight"
    value = centred(name, (rows, columns)) * 2.0**exponent
    return {name: value.astype(np.float32)}


def quantised(module, rows, columns, bits, exponent=None):
    """Affine, drawn as the packed form itself: no rounding to agree on."""
    if exponent is None:
        exponent = EXPONENTS[module.rsplit(".", 1)[-1]]
    exponent = exponent - 1 - bits
    words = columns * bits // 32
    packed = draws(module + ".weight", rows * words) >> np.uint64(32)
    u = draws(module + ".scales", rows * columns // GROUP)
    mantissa = u >> np.uint64(58)
    scales = (np.uint64(15 + exponent) << np.uint64(10)) | (
        mantissa << np.uint64(4)
    )
    nudged = mantissa ^ ((u >> np.uint64(48)) & np.uint64(7))
    biases = (
        np.uint64(0x8000)
        | (np.uint64(15 + exponent + bits - 1) << np.uint64(10))
        | (nudged << np.uint64(4))
    )

    def halves(pattern):
        pattern = pattern.astype(np.uint16).view(np.float16)
        return pattern.reshape(rows, columns // GROUP)

    return {
        module + ".weight": packed.astype(np.uint32).reshape(rows, words),
        module + ".scales": halves(scales),
        module + ".biases": halves(biases),
    }


def linear_shapes():
    shapes = {
        "self_attn.q_proj": (HEADS * HEAD_DIM, HIDDEN),
        "self_attn.k_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.v_proj": (KV_HEADS * HEAD_DIM, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * HEAD_DIM),
        "mlp.gate_proj": (MLP, HIDDEN),
        "mlp.up_proj": (MLP, HIDDEN),
        "mlp.down_proj": (HIDDEN, MLP),
    }
    for layer in range(LAYERS):
        for module, shape in shapes.items():
            yield f"model.layers.{layer}.{module}", shape


def tensors(tied, is_quantised):
    result = {"model.norm.weight": norm("model.norm.weight")}
    for layer in range(LAYERS):
        for part in ("input_layernorm", "post_attention_layernorm"):
            name = f"model.layers.{layer}.{part}.weight"
            result[name] = norm(name)
    matrices = {"model.embed_tokens": (VOCAB, HIDDEN)}
    matrices.update(linear_shapes())
    if not tied:
        matrices["lm_head"] = (VOCAB, HIDDEN)
    for module, shape in matrices.items():
        if is_quantised:
            bits = 8 if module == "model.embed_tokens" else 4
            result.update(quantised(module, *shape, bits))
        else:
            result.update(dense(module, *shape))
    return result


def config(tied, is_quantised):
    result = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "intermediate_size": MLP,
        "vocab_size": VOCAB,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
    }
    if is_quantised:
        group = {"group_size": GROUP, "mode": "affine"}
        result["quantization"] = {
            **group,
            "bits": 4,
            "model.embed_tokens": {**group, "bits": 8},
        }
    return result


def write(folder, tied=True, is_quantised=False):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(config(tied, is_quantised), indent=2) + "\n"
    (folder / "config.json").write_text(text)
    save_file(tensors(tied, is_quantised), folder / "model.safetensors")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--untied", action="store_true")
    parser.add_argument("--quantised", action="store_true")
    args = parser.parse_args()
    write(args.folder, not args.untied, args.quantised)


if __name__ == "__main__":
    main()

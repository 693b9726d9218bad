"""Makes tests/data/tiny_kv.json.

    python tiny_kv_golden.py

Greedy tokens and logits of a tiny model of each family, dense, in mlx-lm, f32,
whose keys and values are quantised when they are written. mlx-lm's own
quantised caches know no sliding window, no soft cap, no sinks and convert in
steps; so each row goes through mx.quantize and back on its way into a plain
cache, which masks windows. Layers that attend to another's rows see them as it
does; recurrent layers have no rows.
"""

import pathlib
import tempfile

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache, KVCache, make_prompt_cache

import tiny_families
import tiny_gemma4
import tiny_gemma4_golden
import tiny_golden
import tiny_gpt_oss
import tiny_gpt_oss_golden
import tiny_hybrid
import tiny_moe
import tiny_moe_golden
import truth

LENGTHS = (5, 70)
GROUP = 32
TOKENS = 16
ALL_SCHEMES = ("gemma2", "gemma3_text", "gemma4_text", "gpt_oss")
ALL_SCHEMES += ("mistral", "qwen3")
# Where a family's tiny model has heads of less than a group.
WIDE_HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1}
WIDER = {
    "granite": WIDE_HEADS,
    "llama": {**WIDE_HEADS, "head_dim": 32},
    "olmo2": WIDE_HEADS,
    "olmo3": WIDE_HEADS,
    "phi3": {**WIDE_HEADS, "partial_rotary_factor": 0.25},
    "qwen2": WIDE_HEADS,
    "smollm3": WIDE_HEADS,
    "starcoder2": WIDE_HEADS,
}


class QuantizedOnWrite(KVCache):
    def __init__(self, bits):
        super().__init__()
        self.held_bits = bits

    def update_and_fetch(self, keys, values):
        return super().update_and_fetch(self.held(keys), self.held(values))

    def held(self, rows):
        if self.held_bits is None:
            return rows
        parts = mx.quantize(rows, GROUP, self.held_bits)
        return mx.dequantize(*parts, GROUP, self.held_bits)


def bits_of(scheme, caches):
    """By layer; None: in full."""
    bits = [scheme] * len(caches)
    if scheme == "mixed":
        bits = [(8, 4, None, 8)[i % 4] for i in range(len(caches))]
    return [
        None if isinstance(cache, ArraysCache) else own
        for cache, own in zip(caches, bits)
    ]


def quantized_caches(model, bits):
    return [
        cache if isinstance(cache, ArraysCache) else QuantizedOnWrite(own)
        for cache, own in zip(make_prompt_cache(model), bits)
    ]


def plain_answers(model, make_cache):
    return [
        tiny_golden.answer(model, length, make_cache, TOKENS)
        for length in LENGTHS
    ]


def routed_answers(model, make_cache):
    routers = tiny_moe_golden.watch(model)
    return [
        tiny_moe_golden.answer(model, routers, length, make_cache)
        for length in LENGTHS
    ]


def gemma4_answers(model, make_cache):
    routers = tiny_gemma4_golden.watch(model)
    distinct = tiny_gemma4_golden.DISTINCT
    return [
        tiny_moe_golden.answer(model, routers, length, make_cache, distinct)
        for length in LENGTHS
    ]


def families():
    """(name, config, tensors) of each."""
    for name in tiny_families.FAMILIES:
        config = tiny_families.config_of(name, False)
        config = {**config, **WIDER.get(name, {})}
        yield name, config, tiny_families.parameters(config)


def sources():
    """(models, write, answers_of) of each kind."""
    yield families(), tiny_families.write, plain_answers
    gemma4 = [m for m in tiny_gemma4.models() if m[0] == "gemma4_text"]
    yield gemma4, tiny_moe.write, plain_answers
    # Values that are keys, and experts beside an MLP.
    names = ("gemma4_12b", "gemma4_26b")
    large = [m for m in tiny_gemma4.models() if m[0] in names]
    yield large, tiny_moe.write, gemma4_answers
    hybrid = [m for m in tiny_hybrid.models() if m[0] == "qwen3_5"]
    yield hybrid, tiny_hybrid.write, plain_answers
    names = ("qwen3_moe_mixed", "qwen3_next_mixed", "qwen3_5_moe_as_published")
    moe = [m for m in tiny_moe.models() if m[0] in names]
    yield moe, tiny_moe.write, routed_answers
    tiny_gpt_oss_golden.keep_ramps()
    gpt_oss = [m for m in tiny_gpt_oss.models() if m[0] == "gpt_oss"]
    yield gpt_oss, tiny_moe.write, tiny_gpt_oss_golden.answers


def load(write, config, parameters):
    with tempfile.TemporaryDirectory() as folder:
        write(pathlib.Path(folder), config, parameters)
        return truth.load(folder, as_stored=True)


def make_case(model, write, answers_of, scheme):
    name, config, parameters = model
    loaded = load(write, config, parameters)
    bits = bits_of(scheme, make_prompt_cache(loaded))
    answers = answers_of(loaded, lambda model: quantized_caches(model, bits))
    print(name, scheme, [a["min_gap"] for a in answers], flush=True)
    return {
        "name": f"{name}_{scheme}",
        "config": config,
        "tensors": parameters,
        "kv_config": [
            {"layer_idx": i, "bits": b, "group_size": GROUP}
            for i, b in enumerate(bits)
            if b is not None
        ],
        "answers": answers,
    }


def main():
    tiny_golden.write_cases(
        "tiny_kv",
        [
            make_case(model, write, answers_of, scheme)
            for models, write, answers_of in sources()
            for model in models
            for scheme in (
                (8, 4, "mixed") if model[0] in ALL_SCHEMES else ("mixed",)
            )
        ],
    )


if __name__ == "__main__":
    main()

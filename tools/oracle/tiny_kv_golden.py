"""Makes tests/data/tiny_kv.json.

    python tiny_kv_golden.py

Greedy tokens and logits of tiny models (tiny_families.py and others, dense) in
mlx-lm, f32, whose keys and values are quantised when they are written. mlx-lm's
own quantised caches know no sliding window, no soft cap, no sinks and convert in
steps; so each row goes through mx.quantize and back on its way into a plain
cache, which masks windows. Layers that attend to another's rows see them as it
does.
"""

import pathlib
import tempfile

import mlx.core as mx
from mlx_lm.models.cache import KVCache, make_prompt_cache

import tiny_families
import tiny_gemma4
import tiny_golden
import tiny_gpt_oss
import tiny_gpt_oss_golden
import tiny_moe
import truth

GOLDEN = tiny_golden.GOLDEN.with_name("tiny_kv.json")
LENGTHS = (5, 70)
GROUP = 32
TOKENS = 16


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


def bits_of(scheme, layers):
    """By layer; None: in full."""
    if scheme == "mixed":
        return [(8, 4, None, 8)[i % 4] for i in range(layers)]
    return [scheme] * layers


def load(family):
    with tempfile.TemporaryDirectory() as folder:
        for name, config, parameters in tiny_gemma4.models():
            if name == family:
                tiny_gemma4.write(folder, config, parameters)
                return truth.load(pathlib.Path(folder))
        for name, config, parameters in tiny_gpt_oss.models():
            if name == family:
                tiny_moe.write(folder, config, parameters)
                return truth.load(pathlib.Path(folder), as_stored=True)
        config = tiny_families.config_of(family, False)
        tiny_families.write(folder, config, tiny_families.parameters(config))
        return truth.load(pathlib.Path(folder))


def answers_of(family, model, make_cache):
    if family == "gpt_oss":
        return tiny_gpt_oss_golden.answers(model, make_cache)
    return [
        tiny_golden.answer(model, length, make_cache, TOKENS)
        for length in LENGTHS
    ]


def make_case(family, scheme):
    model = load(family)
    bits = bits_of(scheme, len(make_prompt_cache(model)))
    answers = answers_of(
        family, model, lambda _: [QuantizedOnWrite(b) for b in bits]
    )
    print(family, scheme, [a["min_gap"] for a in answers], flush=True)
    return {
        "name": f"{family}_{scheme}",
        "family": family,
        "kv_config": [
            {"layer_idx": i, "bits": b, "group_size": GROUP}
            for i, b in enumerate(bits)
            if b is not None
        ],
        "answers": answers,
    }


def main():
    tiny_gpt_oss_golden.keep_ramps()  # no other has yarn
    cases = [
        make_case(family, scheme)
        for family in (
            "gemma2",
            "gemma3_text",
            "gemma4_text",
            "mistral",
            "qwen3",
            "gpt_oss",
        )
        for scheme in (8, 4, "mixed")
    ]
    header = {
        "made_by": "tools/oracle/tiny_kv_golden.py",
        "command": "python tiny_kv_golden.py",
        **truth.versions(),
    }
    truth.write_golden(GOLDEN, header, cases)


if __name__ == "__main__":
    main()

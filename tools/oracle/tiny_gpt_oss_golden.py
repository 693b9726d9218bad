"""Makes tests/data/tiny_gpt_oss.json.

    python tiny_gpt_oss_golden.py

As tiny_moe_golden.py, of the models of tiny_gpt_oss.py. mlx-lm rounds the ends
of yarn's ramp whatever `truncate` says, transformers does not: here it doesn't
either.
"""

import math
import types

from mlx_lm.models import rope_utils
from mlx_lm.models.cache import make_prompt_cache

import tiny_golden
import tiny_gpt_oss
import tiny_moe
import tiny_moe_golden

LENGTHS = (5, 70)


def keep_ramps():
    """For all models that are loaded from now on."""
    unrounded = {**vars(math), "floor": float, "ceil": float}
    rope_utils.math = types.SimpleNamespace(**unrounded)


def watch(model):
    routers = []
    for layer in model.layers:
        layer.mlp.router = tiny_moe_golden.Watched(
            layer.mlp.router, layer.mlp.num_experts_per_tok
        )
        routers.append(layer.mlp.router)
    return routers


def answers(model, make_cache=make_prompt_cache):
    routers = watch(model)
    return [
        tiny_moe_golden.answer(model, routers, length, make_cache)
        for length in LENGTHS
    ]


def main():
    keep_ramps()
    tiny_golden.write_cases(
        "tiny_gpt_oss",
        [
            tiny_golden.make_case(*model, tiny_moe.write, answers)
            for model in tiny_gpt_oss.models()
        ],
    )


if __name__ == "__main__":
    main()

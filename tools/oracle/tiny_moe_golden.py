"""Makes tests/data/tiny_moe.json.

    python tiny_moe_golden.py

Greedy tokens and logits of the models of tiny_moe.py in mlx-lm, f32; the
quantised ones by the quantised matmul, as they are. Prompts are chosen so that
no router on the way is near a tie between the last expert that it picks and
the next one.
"""

import itertools

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import make_prompt_cache

import tiny_golden
import tiny_moe
import truth

LENGTHS = (5, 40)
TOKENS = 12
# Of a router's logits, whose spread is about 5: above what activations of 15
# bits make of them.
MIN_ROUTER_GAP = 0.03


class Watched(nn.Module):
    """A router that notes how near it is to a tie."""

    def __init__(self, router, top_k):
        super().__init__()
        self.router = router
        self.top_k = top_k
        self.gaps = []

    def __call__(self, x):
        out = self.router(x)
        ordered = mx.sort(out, axis=-1)
        gaps = ordered[..., -self.top_k] - ordered[..., -self.top_k - 1]
        self.gaps.append(gaps.min().item())
        return out


def watch(model):
    routers = []
    for layer in model.layers:
        if hasattr(layer.mlp, "switch_mlp"):
            layer.mlp.gate = Watched(layer.mlp.gate, layer.mlp.top_k)
            routers.append(layer.mlp.gate)
    return routers


def answer(
    model,
    routers,
    length,
    make_cache=make_prompt_cache,
    distinct=TOKENS // 2 + 1,
):
    """`distinct`: so many different tokens at least. `routers` may be none."""
    for attempt in itertools.count():
        prompt = tiny_golden.prompt_ids(length, attempt)
        for router in routers:
            router.gaps = []
        ids, chosen_from = truth.greedy(
            model, prompt, TOKENS, make_cache
        )
        router_gap = min(
            (min(router.gaps) for router in routers), default=MIN_ROUTER_GAP
        )
        gap = min(map(truth.gap, chosen_from))
        if (
            gap >= tiny_golden.MIN_GAP
            and router_gap >= MIN_ROUTER_GAP
            and len(set(ids)) >= distinct
        ):
            break
    return {
        "prompt_ids": prompt,
        "ids": ids,
        "min_gap": truth.shorten(gap),
        **({"min_router_gap": truth.shorten(router_gap)} if routers else {}),
        "sum": [truth.shorten(mx.sum(out).item()) for out in chosen_from],
        "top": [truth.top(out) for out in chosen_from],
    }


def answers(model):
    routers = watch(model)
    return [answer(model, routers, length) for length in LENGTHS]


def main():
    tiny_golden.write_cases(
        "tiny_moe",
        [
            tiny_golden.make_case(*model, tiny_moe.write, answers)
            for model in tiny_moe.models()
        ],
    )


if __name__ == "__main__":
    main()

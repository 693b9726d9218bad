"""Makes tests/data/tiny_gemma4.json.

    python tiny_gemma4_golden.py

Greedy tokens and logits of the models of tiny_gemma4.py in mlx-lm, f32; the
quantised ones by the quantised matmul, as they are. Prompts are chosen so that
no router on the way is near a tie, as in tiny_moe_golden.py. A prompt that is
read in pieces has to give what it gives at once.
"""

import itertools
import pathlib
import tempfile

import mlx.core as mx

import tiny_gemma4
import tiny_golden
import truth
from tiny_golden import check_pieces
from tiny_moe_golden import MIN_ROUTER_GAP, Watched

GOLDEN = tiny_golden.GOLDEN.with_name("tiny_gemma4.json")
LENGTHS = (5, 40)
TOKENS = 12


def watch(model):
    routers = []
    for layer in model.layers:
        if layer.enable_moe:
            router = layer.router
            router.proj = Watched(router.proj, router.config.top_k_experts)
            routers.append(router.proj)
    return routers


def answer(model, routers, length):
    for attempt in itertools.count():
        prompt = tiny_golden.prompt_ids(length, attempt)
        for router in routers:
            router.gaps = []
        ids, chosen_from = truth.greedy(model, prompt, TOKENS)
        router_gap = min((min(router.gaps) for router in routers), default=1)
        gap = min(map(truth.gap, chosen_from))
        if (
            gap >= tiny_golden.MIN_GAP
            and router_gap >= MIN_ROUTER_GAP
            and len(set(ids)) > TOKENS / 4
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


def make_case(name, config, parameters):
    with tempfile.TemporaryDirectory() as folder:
        weights = tiny_gemma4.write(folder, config, parameters)
        model = truth.load(pathlib.Path(folder), as_stored=True)
    routers = watch(model)
    answers = [answer(model, routers, n) for n in LENGTHS]
    difference = check_pieces(model, answers[-1]["prompt_ids"])
    gaps = [(a["min_gap"], a.get("min_router_gap")) for a in answers]
    print(name, gaps, difference, flush=True)
    return {
        "name": name,
        "config": config,
        "tensors": parameters,
        "weights": tiny_golden.digest(weights),
        "answers": answers,
    }


def main():
    header = {
        "made_by": "tools/oracle/tiny_gemma4_golden.py",
        "command": "python tiny_gemma4_golden.py",
        **truth.versions(),
    }
    cases = [make_case(*model) for model in tiny_gemma4.models()]
    truth.write_golden(GOLDEN, header, cases)


if __name__ == "__main__":
    main()

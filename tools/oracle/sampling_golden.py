"""Writes tests/data/sampling.json: what mlx-lm's logits processors make of
random logits, and which tokens its truncations keep.

usage: python sampling_golden.py
"""

import importlib.metadata
import json
import math
import pathlib
import random

import mlx.core as mx
from mlx_lm import sample_utils

OUT = pathlib.Path(__file__).parents[2] / "tests" / "data" / "sampling.json"
SEED = 11
PROCESSOR_CASES, TRUNCATION_CASES = 40, 60
# Cumulative probabilities this close to a boundary depend on rounding.
MARGIN = 1e-4


def random_logits(draws, size, spread):
    return [round(draws.gauss(0, spread), 3) for _ in range(size)]


def processor_params(draws, size):
    """A random choice of processors; an absent one is off."""
    params = {}
    if draws.random() < 0.5:
        ids = draws.sample(range(size), draws.randint(1, 5))
        params["logit_bias"] = [[i, round(draws.uniform(-5, 5), 2)] for i in ids]
    for name, choices in (
        ("repetition", (0.5, 1.1, 1.3, 2.0)),
        ("presence", (-1.5, 0.5, 2.0)),
        ("frequency", (-0.5, 0.25, 1.0)),
    ):
        if draws.random() < 0.6:
            params[f"{name}_penalty"] = draws.choice(choices)
            params[f"{name}_context"] = draws.choice((0, 1, 5, 20))
    return params


def processed(logits, tokens, params):
    processors = sample_utils.make_logits_processors(
        logit_bias=dict(params.get("logit_bias", [])),
        repetition_penalty=params.get("repetition_penalty"),
        repetition_context_size=params.get("repetition_context", 20),
        presence_penalty=params.get("presence_penalty"),
        presence_context_size=params.get("presence_context", 20),
        frequency_penalty=params.get("frequency_penalty"),
        frequency_context_size=params.get("frequency_context", 20),
    )
    array = mx.array([logits])
    for processor in processors:
        array = processor(mx.array(tokens), array)
    return [float(f"{v:.6g}") for v in array[0].tolist()]


def processor_case(draws):
    size = draws.choice((32, 48))
    logits = random_logits(draws, size, 3)
    tokens = [draws.randrange(size // 2) for _ in range(draws.randint(1, 40))]
    params = processor_params(draws, size)
    return {
        "logits": logits,
        "tokens": tokens,
        "params": params,
        "processed": processed(logits, tokens, params),
    }


def truncation_params(draws, size):
    params = {
        "top_p": round(draws.uniform(0.05, 0.98), 3),
        "min_p": round(draws.uniform(0.01, 0.6), 3),
        "min_tokens_to_keep": draws.choice((1, 1, 2, 5)),
        "xtc_threshold": round(draws.uniform(0.0, 0.3), 3),
        "xtc_exempt": draws.sample(range(size), draws.randint(0, 3)),
        "top_k": draws.randint(1, size - 1),
    }
    return params


def truncations(params):
    """The four steps; XTC as when its draw is won."""
    return {
        "top_p": lambda x: sample_utils.apply_top_p(x, params["top_p"]),
        "min_p": lambda x: sample_utils.apply_min_p(
            x, params["min_p"], params["min_tokens_to_keep"]
        ),
        "xtc": lambda x: sample_utils.apply_xtc(
            x, 1.0, params["xtc_threshold"], params["xtc_exempt"]
        ),
        "top_k": lambda x: sample_utils.apply_top_k(x, params["top_k"]),
    }


def kept(logprobs):
    return [i for i, v in enumerate(logprobs[0].tolist()) if v > -math.inf]


def is_clear(logits, params):
    """True iff no boundary of top_p or XTC is near, and no two are equal."""
    weights = sorted((math.exp(v) for v in logits), reverse=True)
    total, sums = sum(weights), [0.0]
    for weight in weights:
        sums.append(sums[-1] + weight / total)
    near_p = min(abs(s - params["top_p"]) for s in sums)
    return near_p > MARGIN and len(set(logits)) == len(logits)


def truncation_case(draws):
    while True:
        size = draws.choice((33, 64))
        logits = random_logits(draws, size, draws.choice((0.5, 2, 4)))
        params = truncation_params(draws, size)
        if is_clear(logits, params):
            break
    array = mx.array([logits])
    array = array - mx.logsumexp(array, axis=-1, keepdims=True)
    alone, chain, chained = {}, {}, array
    for name, step in truncations(params).items():
        alone[name] = kept(step(array))
        chained = step(chained)
        chain[name] = kept(chained)
    return {"logits": logits, "params": params, "alone": alone, "chain": chain}


def main():
    draws = random.Random(SEED)
    head = {
        "made_by": "tools/oracle/sampling_golden.py",
        "mlx": importlib.metadata.version("mlx"),
        "mlx-lm": importlib.metadata.version("mlx-lm"),
    }
    sections = {
        "processors": [processor_case(draws) for _ in range(PROCESSOR_CASES)],
        "truncations": [truncation_case(draws) for _ in range(TRUNCATION_CASES)],
    }
    text = json.dumps(head)[:-1]
    for name, cases in sections.items():
        lines = ",\n".join(json.dumps(case) for case in cases)
        text += f',\n"{name}": [\n{lines}\n]'
    OUT.write_text(text + "}\n")


if __name__ == "__main__":
    main()

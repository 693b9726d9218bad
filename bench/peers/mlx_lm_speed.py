"""How fast mlx-lm reads a prompt, or decodes: one JSON object.

Run by bench/peers/run in the oracle's environment.
"""

import argparse
import json
import time

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=0)
    parser.add_argument("--gen", type=int, default=0)
    options = parser.parse_args()
    model, _ = load(options.model)
    cache = make_prompt_cache(model)
    length = max(options.prompt, 1)
    ids = mx.array([[(i * 7919 + 11) % 49152 for i in range(length)]])
    mx.eval(model(ids[:, :1], cache=make_prompt_cache(model)))  # warm-up

    start = time.perf_counter()
    logits = model(ids, cache=cache)[:, -1]
    token = mx.argmax(logits, axis=-1, keepdims=True)
    mx.eval(token)
    if options.gen:
        start = time.perf_counter()
        for _ in range(options.gen):
            logits = model(token, cache=cache)[:, -1]
            token = mx.argmax(logits, axis=-1, keepdims=True)
            mx.eval(token)
    seconds = time.perf_counter() - start
    print(json.dumps({"tok_s": (options.gen or options.prompt) / seconds}))


if __name__ == "__main__":
    main()

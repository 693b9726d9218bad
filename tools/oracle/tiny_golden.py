"""Makes tests/data/tiny_llama.json.

    python tiny_golden.py

Greedy tokens and logits of the four tiny llama models (tests/data/README.md)
in mlx-lm, f32; the quantised ones by the quantised matmul, as they are.
"""

import itertools
import pathlib
import tempfile

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

import tiny_llama
import truth

GOLDEN = (
    pathlib.Path(__file__).parents[2] / "tests" / "data" / "tiny_llama.json"
)
LENGTHS = (1, 5, 37, 200)
TOKENS = 24
# Far above what the order of an f32 sum changes, so that greedy tokens may be
# compared at all.
MIN_GAP = 0.01
PIECE = 11
# Of logits of a few units: f32 sums in another order.
TOLERANCE = 1e-3


def digest(tensors):
    """FNV-1a-64 of each tensor's name and bytes, in the order of names."""
    value = 0xCBF29CE484222325
    for name in sorted(tensors):
        for byte in name.encode() + tensors[name].tobytes():
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def prompt_ids(length, attempt):
    u = tiny_llama.draws(f"prompt.{length}.{attempt}", length)
    return [int(byte) for byte in u >> np.uint64(56)]


def clear_prompt(model, length, make_cache, count):
    """The first prompt of that length whose answer has no near tie."""
    for attempt in itertools.count():
        prompt = prompt_ids(length, attempt)
        ids, chosen_from = truth.greedy(model, prompt, count, make_cache)
        gap = min(map(truth.gap, chosen_from))
        if gap >= MIN_GAP and len(set(ids)) > count / 2:
            return prompt, ids, chosen_from, gap


def answer(model, length, make_cache=make_prompt_cache, count=TOKENS):
    """What a case says beside which model it is."""
    prompt, ids, chosen_from, gap = clear_prompt(
        model, length, make_cache, count
    )
    return {
        "prompt_ids": prompt,
        "ids": ids,
        "min_gap": truth.shorten(gap),
        "logsumexp": [
            truth.shorten(mx.logsumexp(out).item()) for out in chosen_from
        ],
        "sum": [truth.shorten(mx.sum(out).item()) for out in chosen_from],
        "absmax": [
            truth.shorten(mx.abs(out).max().item()) for out in chosen_from
        ],
        "top": [truth.top(out) for out in chosen_from],
    }


def check_pieces(model, prompt):
    """A prompt that is read in pieces has to give what it gives at once."""
    out = {}
    for size in (len(prompt), PIECE):
        cache = make_prompt_cache(model)
        for begin in range(0, len(prompt), size):
            piece = mx.array([prompt[begin : begin + size]])
            out[size] = model(piece, cache=cache)[0, -1]
    difference = mx.abs(out[len(prompt)] - out[PIECE]).max().item()
    assert difference < TOLERANCE, difference
    return difference


def make_case(name, config, parameters, write, answers_of):
    """Of a model that is drawn by name: `write` draws it into a folder, and
    `answers_of` asks it; the last answer's prompt is read in pieces, too.
    """
    with tempfile.TemporaryDirectory() as folder:
        weights = write(pathlib.Path(folder), config, parameters)
        model = truth.load(folder, as_stored=True)
    answers = answers_of(model)
    difference = check_pieces(model, answers[-1]["prompt_ids"])
    print(name, [a["min_gap"] for a in answers], difference, flush=True)
    return {
        "name": name,
        "config": config,
        "tensors": parameters,
        "weights": digest(weights),
        "answers": answers,
    }


def write_cases(name, cases):
    """To tests/data/`name`.json, as made by the script `name`_golden.py."""
    header = {
        "made_by": f"tools/oracle/{name}_golden.py",
        "command": f"python {name}_golden.py",
        **truth.versions(),
    }
    truth.write_golden(GOLDEN.with_name(f"{name}.json"), header, cases)


def make_cases(tied, quantised):
    name = ("tied" if tied else "untied") + ("-4bit" if quantised else "")
    with tempfile.TemporaryDirectory() as folder:
        tiny_llama.write(folder, tied, quantised)
        model = truth.load(folder, as_stored=True)
    weights = digest(tiny_llama.tensors(tied, quantised))
    for length in LENGTHS:
        case = answer(model, length)
        yield {
            "name": f"{name}, {length}",
            "tied": tied,
            "quantised": quantised,
            "weights": weights,
            **case,
        }
        print(f"{name}, {length}: {case['min_gap']}, {case['ids']}")


def main():
    cases = []
    for tied, quantised in itertools.product((True, False), (False, True)):
        cases.extend(make_cases(tied, quantised))
    header = {
        "made_by": "tools/oracle/tiny_golden.py",
        "command": "python tiny_golden.py",
        **truth.versions(),
    }
    truth.write_golden(GOLDEN, header, cases)


if __name__ == "__main__":
    main()

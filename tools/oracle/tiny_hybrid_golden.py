"""Makes tests/data/tiny_hybrid.json.

    python tiny_hybrid_golden.py

Greedy tokens and logits of the models of tiny_hybrid.py in mlx-lm, f32; the
quantised ones by the quantised matmul, as they are. A prompt that is read in
pieces has to give what it gives at once.
"""

import pathlib
import tempfile

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

import tiny_golden
import tiny_hybrid
import truth

GOLDEN = tiny_golden.GOLDEN.with_name("tiny_hybrid.json")
LENGTHS = (5, 70)
PIECE = 11
# Of logits of a few units: f32 sums in another order.
TOLERANCE = 1e-3


def check_pieces(model, prompt):
    out = {}
    for size in (len(prompt), PIECE):
        cache = make_prompt_cache(model)
        for begin in range(0, len(prompt), size):
            piece = mx.array([prompt[begin : begin + size]])
            out[size] = model(piece, cache=cache)[0, -1]
    difference = mx.abs(out[len(prompt)] - out[PIECE]).max().item()
    assert difference < TOLERANCE, difference
    return difference


def make_case(name, config, parameters):
    with tempfile.TemporaryDirectory() as folder:
        weights = tiny_hybrid.write(folder, config, parameters)
        model = truth.load(pathlib.Path(folder), as_stored=True)
    answers = [tiny_golden.answer(model, n) for n in LENGTHS]
    difference = check_pieces(model, answers[-1]["prompt_ids"])
    print(name, [a["min_gap"] for a in answers], difference, flush=True)
    return {
        "name": name,
        "config": config,
        "tensors": parameters,
        "weights": tiny_golden.digest(weights),
        "answers": answers,
    }


def main():
    header = {
        "made_by": "tools/oracle/tiny_hybrid_golden.py",
        "command": "python tiny_hybrid_golden.py",
        **truth.versions(),
    }
    cases = [make_case(*model) for model in tiny_hybrid.models()]
    truth.write_golden(GOLDEN, header, cases)


if __name__ == "__main__":
    main()

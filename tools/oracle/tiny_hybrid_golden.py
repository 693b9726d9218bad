"""Makes tests/data/tiny_hybrid.json.

    python tiny_hybrid_golden.py

Greedy tokens and logits of the models of tiny_hybrid.py in mlx-lm, f32; the
quantised ones by the quantised matmul, as they are.
"""

import tiny_golden
import tiny_hybrid

LENGTHS = (5, 70)


def answers(model):
    return [tiny_golden.answer(model, length) for length in LENGTHS]


def main():
    tiny_golden.write_cases(
        "tiny_hybrid",
        [
            tiny_golden.make_case(*model, tiny_hybrid.write, answers)
            for model in tiny_hybrid.models()
        ],
    )


if __name__ == "__main__":
    main()

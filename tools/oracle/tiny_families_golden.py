"""Makes tests/data/tiny_families.json.

    python tiny_families_golden.py

Greedy tokens and logits of a tiny model of each family (tiny_families.py) in
mlx-lm, f32; the quantised ones by the quantised matmul, as they are.
"""

import tiny_families
import tiny_golden

LENGTHS = (5, 70)


def models():
    """(name, config, tensors) of each."""
    for family in tiny_families.FAMILIES:
        plain = tiny_families.config_of(family, False)
        parameters = tiny_families.parameters(plain)
        yield family, plain, parameters
        quantised = tiny_families.config_of(family, True)
        yield family + "_4bit", quantised, parameters
    for wrapper in tiny_families.WRAPPED:
        config = tiny_families.wrapped_config_of(wrapper)
        parameters = tiny_families.parameters(config)
        yield wrapper, config, tiny_families.seeing_parts(parameters)


def answers(model):
    return [tiny_golden.answer(model, length) for length in LENGTHS]


def main():
    tiny_golden.write_cases(
        "tiny_families",
        [
            tiny_golden.make_case(*model, tiny_families.write, answers)
            for model in models()
        ],
    )


if __name__ == "__main__":
    main()

"""Makes tests/data/tiny_families.json.

    python tiny_families_golden.py

Greedy tokens and logits of a tiny model of each family (tiny_families.py) in
mlx-lm, f32; the quantised ones by the quantised matmul, as they are.
"""

import pathlib
import tempfile

import tiny_families
import tiny_golden
import truth

GOLDEN = tiny_golden.GOLDEN.with_name("tiny_families.json")
LENGTHS = (5, 70)


def make_case(family, is_quantised):
    config = tiny_families.config_of(family, is_quantised)
    plain = tiny_families.config_of(family, False)
    parameters = tiny_families.parameters(plain)
    with tempfile.TemporaryDirectory() as folder:
        weights = tiny_families.write(folder, config, parameters)
        model = truth.load(pathlib.Path(folder), as_stored=True)
    case = {
        "name": family + ("_4bit" if is_quantised else ""),
        "config": config,
        "tensors": parameters,
        "weights": tiny_golden.digest(weights),
        "answers": [tiny_golden.answer(model, n) for n in LENGTHS],
    }
    print(case["name"], [a["min_gap"] for a in case["answers"]], flush=True)
    return case


def main():
    cases = [
        make_case(family, is_quantised)
        for family in tiny_families.FAMILIES
        for is_quantised in (False, True)
    ]
    header = {
        "made_by": "tools/oracle/tiny_families_golden.py",
        "command": "python tiny_families_golden.py",
        **truth.versions(),
    }
    truth.write_golden(GOLDEN, header, cases)


if __name__ == "__main__":
    main()

"""Writes tests/data/rope.json: rotary embeddings as mlx-lm computes them.

usage: python rope_golden.py

Two cases are not mlx-lm's, which has no such fields: `attention_factor` and
`truncate` (yarn) are as the classes of transformers say, in f64.
"""

import importlib.metadata
import json
import math
import pathlib

import mlx.core as mx
import numpy as np
from mlx_lm.models.rope_utils import initialize_rope

OUT = pathlib.Path(__file__).parents[2] / "tests" / "data" / "rope.json"
HEADS, LENGTH, HEAD_DIM = 2, 3, 16
CONTEXT = 8192
OFFSETS = (0, 5, 1000)
LONG_FACTORS = [1.0, 1.25, 1.5, 2.0, 3.0, 5.5, 8.0, 13.0]
YARN = {
    "rope_type": "yarn",
    "factor": 8.0,
    "original_max_position_embeddings": 1024,
}
# theta, traditional, partial_rotary_factor, rope_scaling as config.json has it.
CASES = (
    (10000.0, False, 1.0, None),
    (10000.0, True, 1.0, None),
    (10000.0, False, 0.5, None),
    (10000.0, True, 0.75, None),
    (100000.0, False, 1.0, {"type": "linear", "factor": 4.0}),
    (
        500000.0,
        False,
        1.0,
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
    (10000.0, False, 1.0, YARN),
    (10000.0, True, 1.0, {**YARN, "mscale": 0.5, "mscale_all_dim": 1.5}),
    (1000.0, False, 0.5, {**YARN, "beta_fast": 4.0, "beta_slow": 3.0}),
    # A context so short that the ramp is of no length.
    (10000.0, False, 1.0, {**YARN, "original_max_position_embeddings": 2}),
    (
        10000.0,
        False,
        1.0,
        {
            "type": "longrope",
            "short_factor": [1.0] * 8,
            "long_factor": LONG_FACTORS,
            "original_max_position_embeddings": 1024,
        },
    ),
    (
        10000.0,
        False,
        0.75,
        {
            "type": "su",
            "short_factor": [1.0] * 6,
            "long_factor": LONG_FACTORS[:6],
            "original_max_position_embeddings": 8192,
        },
    ),
    (1000000.0, False, 0.25, {"rope_type": "proportional"}),
    (10000.0, False, 0.5, {"rope_type": "proportional", "factor": 4.0}),
)
OWN_CASES = (
    (10000.0, False, 1.0, {**YARN, "attention_factor": 1.5}),
    (10000.0, False, 1.0, {**YARN, "truncate": False}),
)


def inputs():
    count = HEADS * LENGTH * HEAD_DIM
    return (mx.arange(count, dtype=mx.float32) / 48 - 1).reshape(
        1, HEADS, LENGTH, HEAD_DIM
    )


def shorten(x):
    return [float(f"{v:.6g}") for v in np.array(x).flatten().tolist()]


def rotated(theta, traditional, partial, scaling, offset):
    """By mlx-lm. Proportional ropes have the share in their own fields."""
    dims = int(HEAD_DIM * partial)
    if scaling and scaling.get("type") == "su":
        scaling = {**scaling, "type": "longrope"}
    if scaling and scaling.get("rope_type") == "proportional":
        scaling = {**scaling, "partial_rotary_factor": partial}
        dims = HEAD_DIM
    rope = initialize_rope(dims, theta, traditional, scaling, CONTEXT)
    return rope(inputs(), offset=offset)


def yarn_rotated(theta, traditional, partial, scaling, offset):
    """By the formulas of the paper, f64."""
    assert not traditional and partial == 1
    half = HEAD_DIM // 2
    factor = scaling["factor"]

    def dimension(turns):
        length = scaling["original_max_position_embeddings"] / (
            turns * 2 * math.pi
        )
        return HEAD_DIM * math.log(length) / (2 * math.log(theta))

    first, last = dimension(32), dimension(1)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, HEAD_DIM - 1)
    stretched = np.clip((np.arange(half) - first) / (last - first), 0, 1)
    plain = theta ** -(np.arange(half) / half)
    frequencies = plain * (stretched / factor + 1 - stretched)
    amplitude = scaling.get("attention_factor", 0.1 * math.log(factor) + 1)
    angles = np.outer(np.arange(LENGTH) + offset, frequencies)
    cosines, sines = amplitude * np.cos(angles), amplitude * np.sin(angles)
    x = np.array(inputs(), dtype=np.float64)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate(
        [a * cosines - b * sines, a * sines + b * cosines], axis=-1
    )


def make_cases(of, by):
    return [
        {
            "rope_theta": theta,
            "rope_traditional": traditional,
            "partial_rotary_factor": partial,
            "rope_scaling": scaling,
            "offset": offset,
            "values": shorten(by(theta, traditional, partial, scaling, offset)),
        }
        for theta, traditional, partial, scaling in of
        for offset in OFFSETS
    ]


def main():
    cases = make_cases(CASES, rotated) + make_cases(OWN_CASES, yarn_rotated)
    head = {
        "made_by": "tools/oracle/rope_golden.py",
        "mlx": importlib.metadata.version("mlx"),
        "mlx-lm": importlib.metadata.version("mlx-lm"),
        "shape": [1, HEADS, LENGTH, HEAD_DIM],
        "max_position_embeddings": CONTEXT,
    }
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(json.dumps(head)[:-1] + ',\n"cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()

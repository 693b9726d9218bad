"""Writes tests/data/rope.json: rotary embeddings as mlx-lm computes them.

usage: python rope_golden.py
"""

import importlib.metadata
import json
import pathlib

import mlx.core as mx
from mlx_lm.models.rope_utils import initialize_rope

OUT = pathlib.Path(__file__).parents[2] / "tests" / "data" / "rope.json"
HEADS, LENGTH, DIMS = 2, 3, 16
OFFSETS = (0, 5, 1000)
# theta, traditional, rope_scaling as config.json has it.
CASES = (
    (10000.0, False, None),
    (10000.0, True, None),
    (100000.0, False, {"type": "linear", "factor": 4.0}),
    (
        500000.0,
        False,
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
)


def rotated(theta, traditional, scaling, offset):
    count = HEADS * LENGTH * DIMS
    x = (mx.arange(count, dtype=mx.float32) / 48 - 1).reshape(
        1, HEADS, LENGTH, DIMS
    )
    rope = initialize_rope(DIMS, theta, traditional, scaling, 8192)
    return [float(f"{v:.6g}") for v in rope(x, offset=offset).flatten().tolist()]


def main():
    cases = [
        {
            "rope_theta": theta,
            "rope_traditional": traditional,
            "rope_scaling": scaling,
            "offset": offset,
            "values": rotated(theta, traditional, scaling, offset),
        }
        for theta, traditional, scaling in CASES
        for offset in OFFSETS
    ]
    head = {
        "made_by": "tools/oracle/rope_golden.py",
        "mlx": importlib.metadata.version("mlx"),
        "mlx-lm": importlib.metadata.version("mlx-lm"),
        "shape": [1, HEADS, LENGTH, DIMS],
    }
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(json.dumps(head)[:-1] + ',\n"cases": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()

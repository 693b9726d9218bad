"""mlx-lm in f32: the numeric truth that goldens are made of.

Weights are dequantised to dense f32 first: the same numbers as the quantised
matmul in f32 (which `as_stored` keeps, and the scripts compare against), and
many times faster.
"""

import importlib.metadata
import json
import pathlib

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map_with_path
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model


def versions():
    return {
        name: importlib.metadata.version(name) for name in ("mlx", "mlx-lm")
    }


def _dense(_, module):
    if not isinstance(module, (nn.QuantizedLinear, nn.QuantizedEmbedding)):
        return module
    weight = mx.dequantize(
        module.weight,
        module.scales,
        module.biases,
        module.group_size,
        module.bits,
    )
    rows, columns = weight.shape
    if isinstance(module, nn.QuantizedLinear):
        result = nn.Linear(columns, rows, bias=False)
    else:
        result = nn.Embedding(rows, columns)
    result.weight = weight
    return result


def load(folder, as_stored=False):
    """The model of `folder` in f32; quantised as it is with `as_stored`."""
    model, _ = load_model(pathlib.Path(folder), lazy=True)
    model.set_dtype(mx.float32)
    if not as_stored:
        leaves = tree_map_with_path(
            _dense, model.leaf_modules(), is_leaf=nn.Module.is_module
        )
        model.update_modules(leaves)
    mx.eval(model.parameters())
    return model


def logits(model, prompt, forced):
    """Yields the logits after the prompt, then after each forced token."""
    cache = make_prompt_cache(model)
    pieces = [prompt] + [[token] for token in forced]
    for piece in pieces:
        out = model(mx.array([piece]), cache=cache)[0, -1]
        mx.eval(out)
        yield out


def greedy(model, prompt, count, make_cache=make_prompt_cache):
    """The `count` most likely tokens one after the other, eos ignored, and
    the logits that each was chosen from."""
    cache = make_cache(model)
    ids, chosen_from = [], []
    piece = prompt
    for _ in range(count):
        out = model(mx.array([piece]), cache=cache)[0, -1]
        mx.eval(out)
        ids.append(int(mx.argmax(out)))
        chosen_from.append(out)
        piece = [ids[-1]]
    return ids, chosen_from


def shorten(value):
    return float(f"{value:.6g}")


def top(out, count=5):
    """[[id, logit], ...], most likely first."""
    order = mx.argsort(-out)[:count].tolist()
    return [[token, shorten(out[token].item())] for token in order]


def gap(out):
    best, second = top(out, 2)
    return best[1] - second[1]


def write_golden(path, header, cases):
    """One line per key of a case: diffs stay readable, the file small."""
    lines = []
    for case in cases:
        fields = [
            f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
            for key, value in case.items()
        ]
        lines.append("{" + ",\n ".join(fields) + "}")
    head = json.dumps(header, indent=1)[:-2]
    body = ",\n".join(lines)
    path.write_text(f'{head},\n "cases": [\n{body}\n]}}\n')
    print(f"{path}: {path.stat().st_size} bytes")

"""Makes tests/data/smollm2_greedy.json.

    LD_PRELOAD=libopenblas.so.0 python smollm2_golden.py GGUF [--check FOLDER]

Greedy tokens and logits of SmolLM2 (the GGUF of the default model) in mlx-lm,
f32. OpenBLAS only makes it faster.

With --check nothing is written: FOLDER, what `ingle import` made of the GGUF,
is held against the GGUF (every dequantised tensor, the ids of every prompt),
and the golden against mlx-lm on FOLDER, quantised as it is.
"""

import argparse
import hashlib
import json
import pathlib

import mlx.core as mx
import tokenizers
from mlx.utils import tree_flatten

import truth
from gguf_llama import GgufLlama, render
from smollm2_prompts import PROMPTS

GOLDEN = (
    pathlib.Path(__file__).parents[2] / "tests" / "data" / "smollm2_greedy.json"
)
TOKENS = 64
# Far above what the order of an f32 sum changes, so that greedy tokens may be
# compared at all.
MIN_GAP = 0.004
CHECKED = ("one token", "capital")  # the quantised matmul is slow


def make_case(model, source, tokenizer, name):
    prompt = PROMPTS[name]
    is_chat = isinstance(prompt, list)
    text = render(source.chat_template(), prompt) if is_chat else prompt
    ids = tokenizer.encode(text).ids
    tokens, chosen_from = truth.greedy(model, ids, TOKENS)
    gap = min(map(truth.gap, chosen_from))
    if gap < MIN_GAP:
        raise SystemExit(f"{name}: a near tie ({gap:.1g}); word it otherwise")
    return {
        "name": name,
        ("messages" if is_chat else "text"): prompt,
        "prompt_ids": ids,
        "ids": tokens,
        "answer": tokenizer.decode(tokens, skip_special_tokens=False),
        "min_gap": truth.shorten(gap),
        "logsumexp": [
            truth.shorten(mx.logsumexp(out).item()) for out in chosen_from
        ],
        "top": [truth.top(out) for out in chosen_from],
    }


def make(path):
    source = GgufLlama(path)
    model, tokenizer = source.model(), source.tokenizer()
    cases = []
    for name in PROMPTS:
        cases.append(make_case(model, source, tokenizer, name))
        print(f"{name}: {cases[-1]['answer']!r}", flush=True)
    digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    header = {
        "made_by": "tools/oracle/smollm2_golden.py",
        "command": "LD_PRELOAD=libopenblas.so.0 python smollm2_golden.py GGUF",
        "model_file": pathlib.Path(path).name,
        "model_sha256": digest,
        **truth.versions(),
    }
    truth.write_golden(GOLDEN, header, cases)


def check_tensors(source, folder):
    expected = dict(tree_flatten(source.model().parameters()))
    found = dict(tree_flatten(truth.load(folder).parameters()))
    if expected.keys() != found.keys():
        raise SystemExit(f"other tensors: {expected.keys() ^ found.keys()}")
    for name, value in expected.items():
        if not mx.array_equal(value, found[name]):
            raise SystemExit(f"{name}: not what the GGUF says")
    print(f"{len(expected)} tensors: the same")


def check_prompts(cases, folder):
    folder = pathlib.Path(folder)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    template = (folder / "chat_template.jinja").read_text()
    for case in cases:
        text = case.get("text") or render(template, case["messages"])
        if tokenizer.encode(text).ids != case["prompt_ids"]:
            raise SystemExit(f"{case['name']}: other prompt ids")
    print(f"{len(cases)} prompts: the same ids")


def check_logits(cases, folder):
    model = truth.load(folder, as_stored=True)
    for case in cases:
        forced = case["ids"]
        worst = 0.0
        outs = truth.logits(model, case["prompt_ids"], forced[:-1])
        for token, top, out in zip(forced, case["top"], outs):
            if int(mx.argmax(out)) != token:
                raise SystemExit(f"{case['name']}: other tokens than golden")
            worst = max(worst, *(abs(out[i].item() - x) for i, x in top))
        print(f"{case['name']}: same tokens, logits within {worst:.1e}")
        if worst > 2e-4:  # the golden itself is rounded to 5e-5
            raise SystemExit("further apart than f32 explains")


def check(path, folder):
    cases = json.loads(GOLDEN.read_text())["cases"]
    check_tensors(GgufLlama(path), folder)
    check_prompts(cases, folder)
    check_logits([c for c in cases if c["name"] in CHECKED], folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gguf")
    parser.add_argument("--check", metavar="FOLDER")
    args = parser.parse_args()
    if args.check:
        check(args.gguf, args.check)
    else:
        make(args.gguf)


if __name__ == "__main__":
    main()

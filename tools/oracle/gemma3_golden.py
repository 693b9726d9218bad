"""Makes tests/data/gemma3_greedy.json.

    LD_PRELOAD=libopenblas.so.0 python gemma3_golden.py GGUF

Greedy tokens and logits of Gemma 3 270M (the GGUF that `scripts/setup real`
joins) in mlx-lm, f32, on what the `gguf` package dequantises; prompts by
sentencepiece. OpenBLAS only makes it faster.
"""

import argparse
import hashlib
import pathlib

import mlx.core as mx

import truth
from gguf_gemma3 import GgufGemma3
from smollm2_prompts import long_text

GOLDEN = (
    pathlib.Path(__file__).parents[2] / "tests" / "data" / "gemma3_greedy.json"
)
TOKENS = 48
# As in smollm2_golden.py.
MIN_GAP = 0.004
WINDOW = 512

# All are continued as they are: the model is not tuned for chat.
PROMPTS = {
    "capital": "The capital of Germany is Berlin. The capital of France is",
    "prose": "One day a small fox",
    "python code": "def fibonacci(n):\n",
    "c code": "#include <stdio.h>\n\nint main(void) {\n\tfor (int i = 1;",
    "numbers": "2, 4, 8, 16, 32, 64,",
    "whitespace": "  Contents\n\n\n1.\tIntroduction   ....  1\n2.",
    "french": "Paris est la capitale de la France. Berlin est",
    "japanese": "日本の首都は",
    "emoji": "🐱 cat\n🏠 house\n👩‍🚀",
    "past the window": long_text(),
    "past it while decoding": long_text()[-1380:],
}


def kl(truth_logits, other):
    logs = truth_logits - mx.logsumexp(truth_logits)
    others = other - mx.logsumexp(other)
    return mx.sum(mx.exp(logs) * (logs - others)).item()


def make_case(models, tokenizer, name):
    model, straight = models
    text = PROMPTS[name]
    ids = [tokenizer.bos_id()] + tokenizer.encode(text)
    tokens, chosen_from = truth.greedy(model, ids, TOKENS)
    gap = min(map(truth.gap, chosen_from))
    if gap < MIN_GAP:
        raise SystemExit(f"{name}: a near tie ({gap:.1g}); word it otherwise")
    as_in_file = truth.logits(straight, ids, tokens[:-1])
    lost = [kl(out, ours) for out, ours in zip(as_in_file, chosen_from)]
    return {
        "name": name,
        "text": text,
        "prompt_ids": ids,
        "ids": tokens,
        "answer": tokenizer.decode(tokens),
        "min_gap": truth.shorten(gap),
        "requantised_kl": truth.shorten(sum(lost) / len(lost)),
        "logsumexp": [
            truth.shorten(mx.logsumexp(out).item()) for out in chosen_from
        ],
        "top": [truth.top(out) for out in chosen_from],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gguf")
    path = parser.parse_args().gguf
    source = GgufGemma3(path)
    models = source.model(), source.model(requantise=False)
    tokenizer = source.tokenizer()
    cases = []
    for name in PROMPTS:
        case = make_case(models, tokenizer, name)
        cases.append(case)
        print(
            f"{name}: {len(case['prompt_ids'])} + {case['answer']!r}, gap "
            f"{case['min_gap']}, KL {case['requantised_kl']}",
            flush=True,
        )
    by_name = {case["name"]: len(case["prompt_ids"]) for case in cases}
    assert by_name["past the window"] > WINDOW
    assert by_name["past it while decoding"] < WINDOW
    assert by_name["past it while decoding"] + TOKENS > WINDOW
    digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    header = {
        "made_by": "tools/oracle/gemma3_golden.py",
        "command": "LD_PRELOAD=libopenblas.so.0 python gemma3_golden.py GGUF",
        "model_file": pathlib.Path(path).name,
        "model_sha256": digest,
        **truth.versions(),
    }
    truth.write_golden(GOLDEN, header, cases)


if __name__ == "__main__":
    main()

"""The default model against mlx-lm in f32 (tests/data/README.md)."""

import json

import pytest

import ingle_process

GOLDEN = ingle_process.ROOT / "tests" / "data" / "smollm2_greedy.json"
CASES = json.loads(GOLDEN.read_text())["cases"]
# Of a log-probability, f32. The logits of all cases are held against the golden
# in tests/real; here, that the command gives what the model computes.
TOLERANCE = 1e-3
THROUGH_THE_COMMAND = [CASES[0], CASES[-1]]


@pytest.mark.parametrize(
    "case", THROUGH_THE_COMMAND, ids=lambda case: case["name"]
)
def test_smollm2_greedy_matches_golden(model, case):
    out = ingle_process.generate(
        model,
        *("--ids", ",".join(map(str, case["prompt_ids"]))),
        *("--max-tokens", len(case["ids"]), "--ignore-eos"),
        *("--exact", "--top-logprobs", 5),
    )
    assert out["ids"] == case["ids"]
    for step, entry in enumerate(out["logprobs"]):
        expected = {
            token: logit - case["logsumexp"][step]
            for token, logit in case["top"][step]
        }
        found = {c["id"]: c["logprob"] for c in entry["top"]}
        floor = min(expected.values())
        for token in expected.keys() | found.keys():
            # Near ties for the fifth place may fall either way.
            apart = abs(found.get(token, floor) - expected.get(token, floor))
            assert apart <= TOLERANCE, f"token {token} of step {step}"


def answer(server, path, body):
    body |= {"temperature": 0, "max_tokens": 12}
    with server.post(path, body) as response:
        return json.load(response)


# The tokenizer and the template as they were imported, and the default
# numerics: as many prompt tokens as the golden has, and its text. The answer
# stops where the golden goes on, and drops a character that its last token
# leaves open.


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "text" in case],
    ids=lambda case: case["name"],
)
def test_texts_are_continued_as_in_the_golden(server, case):
    out = answer(server, "/v1/completions", {"prompt": case["text"]})
    assert out["usage"]["prompt_tokens"] == len(case["prompt_ids"])
    assert case["answer"].startswith(out["choices"][0]["text"])
    assert out["choices"][0]["text"]


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if "messages" in case],
    ids=lambda case: case["name"],
)
def test_chats_are_answered_as_in_the_golden(server, case):
    body = {"messages": case["messages"]}
    out = answer(server, "/v1/chat/completions", body)
    assert out["usage"]["prompt_tokens"] == len(case["prompt_ids"])
    text = out["choices"][0]["message"]["content"]
    assert case["answer"].startswith(text)
    assert text

"""Every knob of the API on the real model, through the official SDK."""

import json
import math

import openai
import pytest

import ingle_process

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
COUNT = "1, 2, 3, 4, 5, 6, 7, 8,"


def chat(client, **options):
    extra = options.pop("extra_body", {})
    defaults = {
        "model": "any",
        "messages": FRANCE,
        "temperature": 0,
        "max_completion_tokens": 12,
    }
    return client.chat.completions.create(
        **(defaults | options), extra_body=extra
    )


def complete(client, **options):
    defaults = {"model": "any", "prompt": COUNT, "temperature": 0}
    return client.completions.create(**(defaults | options))


def post(server, path, body):
    with server.post(path, body) as response:
        return json.load(response)


def check_refused(server, path, body, param):
    code, error = server.error_of(path, body)
    assert code == 400
    assert error["param"] == param
    assert error["message"].startswith(param + ": ")


def test_completions_shape_and_default_512(client):
    answer = complete(client, extra_body={"ignore_eos": True})
    assert answer.object == "text_completion"
    assert answer.id.startswith("cmpl-")
    assert len(answer.choices) == 1
    assert answer.choices[0].index == 0
    assert answer.choices[0].logprobs is None
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 512
    assert answer.usage.total_tokens == 512 + answer.usage.prompt_tokens


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/v1/completions", {"prompt": "x", "logprobs": 21}, "logprobs"),
        ("/v1/completions", {"prompt": "x", "logprobs": True}, "logprobs"),
        ("/v1/chat/completions", {"logprobs": 1}, "logprobs"),
        (
            "/v1/chat/completions",
            {"logprobs": False, "top_logprobs": 2},
            "logprobs",
        ),
        (
            "/v1/chat/completions",
            {"logprobs": True, "top_logprobs": 21},
            "top_logprobs",
        ),
    ],
)
def test_logprobs_validation_400(server, path, body, where):
    check_refused(server, path, {"messages": FRANCE} | body, where)


@pytest.mark.parametrize(
    ("bias", "where"),
    [
        ([], "logit_bias"),
        ({"the": 1}, "logit_bias"),
        ({"42": "x"}, "logit_bias.42"),
        ({"42": 101}, "logit_bias.42"),
        ({"49152": 1}, "logit_bias.49152"),
    ],
)
def test_logit_bias_bad_400(server, bias, where):
    body = {"messages": FRANCE, "logit_bias": bias}
    check_refused(server, "/v1/chat/completions", body, where)


def test_logprobs_blocks(client):
    answer = chat(client, logprobs=True, top_logprobs=20)
    tokens = answer.choices[0].logprobs.content
    assert "".join(t.token for t in tokens) == answer.choices[0].message.content
    for token in tokens:
        assert len(token.top_logprobs) == 20
        values = [other.logprob for other in token.top_logprobs]
        assert values == sorted(values, reverse=True)
        assert max(values) <= 0
        assert token.logprob == values[0]  # greedy
        assert sum(map(math.exp, values)) <= 1.0001
        assert bytes(token.bytes).decode() == token.token


def test_logprobs_in_stream(client):
    whole = chat(client, logprobs=True, top_logprobs=1)
    chunks = chat(client, logprobs=True, top_logprobs=1, stream=True)
    streamed = [
        token
        for chunk in chunks
        for choice in chunk.choices
        if choice.logprobs
        for token in choice.logprobs.content
    ]
    assert streamed == whole.choices[0].logprobs.content


def test_logprobs_are_before_truncation_and_after_processors(client):
    plain = chat(client, logprobs=True, max_completion_tokens=1)
    sampled = chat(
        client,
        logprobs=True,
        max_completion_tokens=1,
        temperature=1.5,
        top_p=0.01,
    )
    first = plain.choices[0].logprobs.content[0]
    assert sampled.choices[0].logprobs.content[0].logprob == pytest.approx(
        first.logprob
    )
    banned = chat(
        client,
        logprobs=True,
        max_completion_tokens=1,
        logit_bias={str(first.id): -100},
    )
    assert banned.choices[0].logprobs.content[0].token != first.token


def test_echo_gives_the_prompts_logprobs(client):
    answer = complete(client, echo=True, logprobs=2, max_tokens=4)
    choice = answer.choices[0]
    assert choice.text.startswith(COUNT)
    block = choice.logprobs
    assert len(block.tokens) == answer.usage.total_tokens
    assert block.token_logprobs[0] is None
    assert all(value <= 0 for value in block.token_logprobs[1:])
    for token, offset in zip(block.tokens, block.text_offset, strict=True):
        assert choice.text[offset:].startswith(token)
    # A greedy answer, given as part of the prompt, is as likely as before.
    again = complete(
        client, prompt=choice.text, echo=True, logprobs=0, max_tokens=0
    ).choices[0]
    assert again.finish_reason == "length"
    assert again.text == choice.text
    assert again.logprobs.token_logprobs[1:] == pytest.approx(
        block.token_logprobs[1:], abs=1e-3
    )


def test_every_prompt_gets_n_answers(client):
    answer = complete(
        client, prompt=[COUNT, "a, b, c, d,"], n=2, max_tokens=3
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    texts = [choice.text for choice in answer.choices]
    assert texts[0] == texts[1] != texts[2] == texts[3]
    assert answer.usage.completion_tokens == 12


def test_answers_to_one_prompt_differ_and_repeat_with_their_seed(client):
    def texts():
        answer = chat(client, n=3, seed=11, temperature=2.0)
        return [choice.message.content for choice in answer.choices]

    first = texts()
    assert len(set(first)) > 1
    assert texts() == first


def test_streamed_answers_carry_their_index(client):
    text = {0: "", 1: ""}
    finished = set()
    for chunk in chat(client, n=2, stream=True):
        for choice in chunk.choices:
            text[choice.index] += choice.delta.content or ""
            if choice.finish_reason:
                finished.add(choice.index)
    assert text[0] == text[1] != ""
    assert finished == {0, 1}


def test_logit_bias_forbids_and_forces(client, server):
    paris = post(server, "/tokenize", {"content": " Paris"})["tokens"]
    assert len(paris) == 1
    without = chat(client, logit_bias={str(paris[0]): -100})
    assert "Paris" not in without.choices[0].message.content
    forced = chat(
        client, logit_bias={str(paris[0]): 100}, max_completion_tokens=3
    )
    assert forced.choices[0].message.content == " Paris" * 3


def test_min_tokens_and_ignore_eos_go_on(client):
    short = chat(client, max_completion_tokens=30)
    assert short.choices[0].finish_reason == "stop"
    assert short.usage.completion_tokens < 30
    for extra in ({"min_tokens": 30}, {"ignore_eos": True}):
        longer = chat(client, max_completion_tokens=30, extra_body=extra)
        assert longer.choices[0].finish_reason == "length"
        assert longer.usage.completion_tokens == 30


def test_penalties_break_repetition(client):
    prompt = "one two one two one two one two one two"
    plain = complete(client, prompt=prompt, max_tokens=8)
    assert plain.choices[0].text.startswith(" two two two")
    for penalties in (
        {"extra_body": {"repetition_penalty": 10}},
        {"presence_penalty": 2, "frequency_penalty": 2},
    ):
        penalised = complete(client, prompt=prompt, max_tokens=8, **penalties)
        assert penalised.choices[0].text != plain.choices[0].text


@pytest.mark.parametrize(
    "extra",
    [
        {"top_k": 1},
        {"min_p": 1},
        {"top_p": 1e-9},
        {"top_k": 20, "min_p": 0.9999},
    ],
)
def test_truncation_to_one_token_is_greedy(client, extra):
    greedy = chat(client).choices[0].message.content
    sampled = chat(client, temperature=2, extra_body=extra)
    assert sampled.choices[0].message.content == greedy


def test_xtc_takes_the_likeliest_away(client):
    greedy = chat(client).choices[0].message.content
    culled = chat(
        client,
        temperature=0.01,
        extra_body={"xtc_probability": 1, "xtc_threshold": 1e-4},
    )
    assert culled.choices[0].message.content != greedy


def test_progress_of_a_long_prompt(server):
    body = {
        "prompt": "word " * 1500,
        "max_tokens": 1,
        "stream": True,
        "return_progress": True,
    }
    with server.post("/v1/completions", body) as response:
        lines = [line for line in response if line.startswith(b"data: {")]
    chunks = [json.loads(line[6:]) for line in lines]
    progress = [
        chunk["prompt_progress"] for chunk in chunks if "prompt_progress" in chunk
    ]
    processed = [step["processed"] for step in progress]
    assert len(processed) >= 3
    assert processed == sorted(processed)
    assert progress[-1]["processed"] == progress[-1]["total"]


def test_text_endpoints_agree_with_generation(server):
    chat_body = {"messages": FRANCE}
    prompt = post(server, "/apply-template", chat_body)["prompt"]
    ids = post(server, "/tokenize", {"content": prompt})["tokens"]
    assert post(server, "/detokenize", {"tokens": ids})["content"] == prompt
    answer = post(
        server, "/v1/chat/completions", chat_body | {"max_tokens": 1}
    )
    assert answer["usage"]["prompt_tokens"] == len(ids)
    pieces = post(
        server, "/tokenize", {"content": prompt, "with_pieces": True}
    )["tokens"]
    assert [piece["id"] for piece in pieces] == ids
    assert "".join(piece["piece"] for piece in pieces) == prompt


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"logprobs": "yes"}, "logprobs"),
        ({"logit_bias": {"the": 1}}, "logit_bias"),
        ({"logit_bias": {"99999": 1}}, "logit_bias.99999"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"n": 129}, "n"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens"),
        ({"xtc_threshold": 0.6}, "xtc_threshold"),
    ],
)
def test_bad_knob_names_itself(server, fields, param):
    body = {"messages": FRANCE} | fields
    check_refused(server, "/v1/chat/completions", body, param)


def test_request_ids_are_unique_and_in_the_answer(server):
    ids = set()
    for _ in range(3):
        with server.post("/tokenize", {"content": "x"}) as response:
            ids.add(response.headers["x-request-id"])
    assert len(ids) == 3
    with server.post(
        "/v1/completions", {"prompt": "x", "max_tokens": 1}
    ) as response:
        answer = json.load(response)
        assert answer["id"] == "cmpl-" + response.headers["x-request-id"]


def test_api_key_is_asked_for(start_server):
    server = start_server("--api-key", "sekrit")
    good = openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="sekrit", max_retries=0
    )
    bad = openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="wrong", max_retries=0
    )
    assert good.models.list().data
    with pytest.raises(openai.AuthenticationError):
        bad.models.list()
    assert server.health() == 200
    assert "sekrit" not in server.log()


def test_flags_are_defaults_of_requests(start_server):
    server = start_server("--temperature", "0", "--max-tokens", "3")
    answers = [
        post(server, "/v1/chat/completions", {"messages": FRANCE})
        for _ in range(2)
    ]
    assert answers[0]["choices"] == answers[1]["choices"]
    assert answers[0]["usage"]["completion_tokens"] == 3
    assert ingle_process.run("serve", "--temperature", "9").returncode != 0

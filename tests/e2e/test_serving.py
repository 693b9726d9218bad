"""What clients that share a server get, as the openai SDK sees it."""

import json
import time
import urllib.request

import openai
import pytest

QUESTION = "What is the capital of France?"


@pytest.fixture
def own_server(start_server):
    """One whose figures are of this test alone."""
    return start_server()


@pytest.fixture
def own_client(own_server):
    return openai.OpenAI(
        base_url=f"{own_server.url}/v1", api_key="none", max_retries=0
    )


def user(text):
    return {"role": "user", "content": text}


def ask(client, messages, **options):
    defaults = {"model": "any", "temperature": 0, "max_completion_tokens": 40}
    return client.chat.completions.create(
        messages=messages, **(defaults | options)
    )


def cached(answer):
    return answer.usage.prompt_tokens_details.cached_tokens


def stats(server):
    with urllib.request.urlopen(f"{server.url}/stats") as response:
        return json.load(response)


def metric(server, name):
    with urllib.request.urlopen(f"{server.url}/metrics") as response:
        for line in response.read().decode().split("\n"):
            if line.startswith(name + " "):
                return float(line[len(name) :])
    raise AssertionError(f"no {name}")


def wait_until_idle(server):
    deadline = time.monotonic() + 10
    while True:
        batch = stats(server)["batch"]
        if batch["active_rows"] + batch["queued"] == 0:
            return
        assert time.monotonic() < deadline, batch
        time.sleep(0.02)


def test_greedy_choices_are_all_the_answer_that_one_gets(client):
    alone = ask(client, [user(QUESTION)])
    three = ask(client, [user(QUESTION)], n=3)
    assert [choice.index for choice in three.choices] == [0, 1, 2]
    text = alone.choices[0].message.content
    assert {choice.message.content for choice in three.choices} == {text}
    each = alone.usage.completion_tokens
    assert three.usage.completion_tokens == 3 * each
    assert three.usage.prompt_tokens == alone.usage.prompt_tokens


def test_sampled_choices_differ_and_their_seeds_repeat_them(client):
    options = {"temperature": 1.5, "seed": 5, "max_completion_tokens": 24}
    first, second = (
        [
            choice.message.content
            for choice in ask(client, [user(QUESTION)], n=4, **options).choices
        ]
        for _ in range(2)
    )
    assert first == second
    assert len(set(first)) == 4


def test_streamed_choices_are_those_that_are_not(client):
    options = {"n": 2, "temperature": 1.0, "seed": 3}
    whole = ask(client, [user(QUESTION)], **options)
    texts = ["", ""]
    for chunk in ask(client, [user(QUESTION)], stream=True, **options):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == [choice.message.content for choice in whole.choices]


def test_second_turn_reads_only_what_is_new(own_client):
    messages = [user("Write a poem about the sea. " * 20)]
    first = ask(own_client, messages)
    assert cached(first) == 0
    messages += [
        {"role": "assistant", "content": first.choices[0].message.content},
        user("And now about the wind."),
    ]
    second = ask(own_client, messages)
    assert cached(second) >= first.usage.prompt_tokens
    cold = ask(own_client, messages, extra_body={"cache": False})
    assert cached(cold) == 0
    assert second.choices[0].message == cold.choices[0].message


def test_request_without_cache_leaves_nothing_behind(own_client):
    messages = [user("Tell me of the long way home. " * 10)]
    without = {"extra_body": {"cache": False}}
    answers = [ask(own_client, messages, **without) for _ in range(2)]
    answers.append(ask(own_client, messages))
    assert [cached(answer) for answer in answers] == [0, 0, 0]
    assert cached(ask(own_client, messages)) > 0


def test_full_queue_is_503_and_says_when_to_come_back(own_server, own_client):
    def start():
        return own_client.completions.create(
            model="any",
            prompt="The",
            n=128,
            stream=True,
            temperature=0,
            max_tokens=4000,
        )

    waiting = [start(), start()]
    with pytest.raises(openai.InternalServerError) as raised:
        ask(own_client, [user(QUESTION)])
    assert raised.value.status_code == 503
    assert raised.value.code == "queue_full"
    assert int(raised.value.response.headers["Retry-After"]) > 0
    assert stats(own_server)["requests"]["refused"] == {"queue_full": 1}
    for stream in waiting:
        stream.close()
    wait_until_idle(own_server)
    assert "Paris" in ask(own_client, [user(QUESTION)]).choices[0].message.content


def test_client_that_leaves_ends_its_answer(own_server, own_client):
    stream = ask(
        own_client,
        [user("Count up from one, and never stop.")],
        stream=True,
        max_completion_tokens=4000,
        extra_body={"ignore_eos": True},
    )
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    assert stats(own_server)["batch"]["active_rows"] == 1
    stream.close()
    wait_until_idle(own_server)
    finished = stats(own_server)["requests"]["finished"]
    assert finished == {
        "stop": 0,
        "length": 0,
        "tool_calls": 0,
        "cancelled": 1,
        "error": 0,
    }


def test_figures_are_what_clients_were_told(own_server, own_client):
    usages = [
        ask(own_client, [user(QUESTION)], max_completion_tokens=tokens).usage
        for tokens in (1, 4, 7)
    ]
    told = stats(own_server)
    prompt = sum(usage.prompt_tokens for usage in usages)
    reused = sum(u.prompt_tokens_details.cached_tokens for u in usages)
    generated = sum(usage.completion_tokens for usage in usages)
    assert told["tokens"] == {
        "prompt": prompt - reused,
        "cached": reused,
        "generated": generated,
    }
    assert told["requests"]["finished"]["length"] == 3
    for name, value in (
        ("ingle_prompt_tokens_total", prompt - reused),
        ("ingle_cached_tokens_total", reused),
        ("ingle_generated_tokens_total", generated),
        ('ingle_requests_finished_total{reason="length"}', 3),
        ("ingle_time_to_first_token_seconds_count", 3),
        ("ingle_inter_token_seconds_count", generated - 3),
    ):
        assert metric(own_server, name) == value, name

"""Chats and completions over HTTP, as the openai SDK and others send them."""

import concurrent.futures
import json
import time
import urllib.request

import openai
import pytest

FRANCE = [{"role": "user", "content": "What is the capital of France?"}]


def ask(client, **options):
    defaults = {
        "model": "any",
        "messages": FRANCE,
        "temperature": 0,
        "max_completion_tokens": 40,
    }
    return client.chat.completions.create(**(defaults | options))


def events(response):
    """The data of each server-sent event."""
    for line in response:
        if line.startswith(b"data: "):
            yield line[len(b"data: ") :].rstrip(b"\n").decode()


def test_paris_streamed_and_not_are_the_same_text(client):
    answer = ask(client).choices[0]
    chunks = list(ask(client, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    streamed = "".join(delta.content or "" for delta in deltas)
    assert "Paris" in answer.message.content
    assert streamed == answer.message.content
    assert answer.finish_reason == "stop"


def test_chat_nonstream_shape(client):
    answer = ask(client)
    assert answer.id.startswith("chatcmpl-")
    assert answer.object == "chat.completion"
    assert abs(answer.created - time.time()) < 3600
    assert [choice.index for choice in answer.choices] == [0]
    assert answer.choices[0].message.role == "assistant"
    usage = answer.usage
    assert usage.prompt_tokens == 37
    assert usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details.cached_tokens >= 0


def test_chat_stream_grammar(server):
    body = {"messages": FRANCE, "temperature": 0, "stream": True}
    with server.post("/v1/chat/completions", body) as response:
        kind = response.headers["Content-Type"]
        *lines, done = list(events(response))
    assert kind.startswith("text/event-stream")
    assert done == "[DONE]"
    first, *middle, last = map(json.loads, lines)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    for chunk in middle:
        assert set(chunk["choices"][0]["delta"]) == {"content"}
        assert chunk["choices"][0]["finish_reason"] is None
    assert last["choices"][0]["delta"] == {}
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"]["prompt_tokens"] == 37
    assert len({chunk["id"] for chunk in (first, *middle, last)}) == 1


def test_stream_with_include_usage_ends_in_a_usage_chunk(client):
    chunks = list(
        ask(client, stream=True, stream_options={"include_usage": True})
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == 37


def test_max_tokens_ends_with_length(client):
    answer = ask(client, max_completion_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


def test_stop_string_is_not_part_of_the_answer(client):
    answer = ask(client, stop=["Paris"])
    assert answer.choices[0].message.content == "The capital of France is "
    assert answer.choices[0].finish_reason == "stop"


def test_seed_makes_sampling_repeatable(client):
    texts = {
        ask(client, temperature=1.0, seed=7).choices[0].message.content
        for _ in range(3)
    }
    assert len(texts) == 1


def test_completions_continue_a_text(client):
    answer = client.completions.create(
        model="any",
        prompt="2, 4, 8, 16, 32, 64, 128, 256, 512,",
        temperature=0,
        max_tokens=8,
    )
    assert answer.object == "text_completion"
    assert answer.choices[0].text.startswith(" 1024,")
    assert answer.choices[0].finish_reason == "length"


def test_completions_take_token_ids(client):
    text = "2, 4, 8, 16, 32, 64, 128, 256, 512,"
    ids = [34, 28, 216, 36, 28, 216, 40, 28, 216, 33, 38, 28]
    first = client.completions.create(
        model="any", prompt=ids, max_tokens=4, temperature=0
    )
    assert first.usage.prompt_tokens == len(ids)
    assert first.choices[0].text
    second = client.completions.create(
        model="any", prompt=[text], max_tokens=4, temperature=0
    )
    assert second.choices[0].text


@pytest.mark.parametrize("prompt", ["", [], 7, {"text": "x"}, None, [1, "x"]])
def test_completions_prompt_validation(server, prompt):
    code, error = server.error_of("/v1/completions", {"prompt": prompt})
    assert code == 400
    assert "prompt" in error["message"]


def test_malformed_json_400(server):
    code, error = server.error_of("/v1/chat/completions", b'{"messages": [')
    assert code == 400
    assert error["type"] == "invalid_request_error"


def test_empty_messages_400(server):
    code, error = server.error_of("/v1/chat/completions", {"messages": []})
    assert code == 400
    assert "messages" in error["message"]


def test_wrong_type_names_its_place(server):
    messages = [{"role": "user", "content": "x"}, {"role": 3, "content": "x"}]
    body = {"messages": messages}
    code, error = server.error_of("/v1/chat/completions", body)
    assert code == 400
    assert "messages[1].role" in error["message"] + str(error["param"])


def test_prompt_beyond_the_context_400(client):
    long = [{"role": "user", "content": "word " * 9000}]
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, messages=long)
    assert raised.value.code == "context_length_exceeded"


def test_models_list_shape(client, model):
    models = client.models.list().data
    assert models[0].id == model.name
    assert models[0].object == "model"
    assert client.models.retrieve(model.name).id == model.name
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_health_exact_body(server):
    with urllib.request.urlopen(f"{server.url}/health") as response:
        assert response.headers["Content-Type"] == "application/json"
        assert response.read() == b'{"status": "ok"}'


def test_unknown_route_404(server):
    code, error = server.error_of("/v1/nothing", {})
    assert code == 404
    assert error["message"]


def test_requests_one_after_another(client):
    texts = {ask(client).choices[0].message.content for _ in range(8)}
    assert len(texts) == 1


def test_requests_at_the_same_time(client):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(client), range(8)))
    assert len({a.choices[0].message.content for a in answers}) == 1


def test_disconnect_frees_the_engine(server, client):
    body = {
        "prompt": "The",
        "stream": True,
        "temperature": 0,
        "max_tokens": 8000,
    }
    for _ in range(3):
        with server.post("/v1/completions", body) as response:
            next(events(response))
        assert server.health() == 200
    begin = time.monotonic()
    assert "Paris" in ask(client).choices[0].message.content
    # Three answers of 8,000 tokens would take minutes.
    assert time.monotonic() - begin < 20

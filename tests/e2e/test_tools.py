"""Tool calls and thoughts as the official SDK reads them.

The default model calls no tools of its own accord: a format makes it say what a
model says that does.
"""

import json
import re

import pytest

import ingle_process
from model_folder import link_model, replace

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "What the weather is like",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
            },
            "required": ["city"],
        },
    },
}
HERMES = (
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln", "days": 2}}'
    "\n</tool_call>"
)
TAGS = (
    "<tool_call>\n<function=weather>\n<parameter=city>\nKöln\n</parameter>\n"
    "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>"
)
ARGUMENTS = {"city": "Köln", "days": 2}


def saying(*texts, **options):
    """A request that is answered with one of the texts."""
    body = {
        "model": "any",
        "messages": [{"role": "user", "content": "Weather in Köln?"}],
        "temperature": 0,
        "tools": [WEATHER],
        "extra_body": {"guided_choice": list(texts)},
    }
    return body | options


@pytest.mark.parametrize("text", [HERMES, TAGS])
def test_call_is_the_same_whole_streamed_and_by_the_helper(client, text):
    answer = client.chat.completions.create(**saying(text)).choices[0]
    (call,) = answer.message.tool_calls
    assert answer.finish_reason == "tool_calls"
    assert answer.message.content is None
    assert re.fullmatch("call_[0-9a-f]{8}", call.id)
    assert call.type == "function"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == ARGUMENTS

    chunks = client.chat.completions.create(**saying(text), stream=True)
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    parts = [
        part for choice in choices for part in choice.delta.tool_calls or []
    ]
    assert choices[0].delta.role == "assistant"
    assert [choice.finish_reason for choice in choices][-1] == "tool_calls"
    assert {part.index for part in parts} == {0}
    assert [part.function.name for part in parts if part.id] == ["weather"]
    arguments = "".join(part.function.arguments for part in parts)
    assert arguments == call.function.arguments
    assert not any(choice.delta.content for choice in choices)

    with client.chat.completions.stream(**saying(text)) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.delta" in kinds
    assert final.finish_reason == "tool_calls"
    (accumulated,) = final.message.tool_calls
    assert accumulated.function.name == "weather"
    assert accumulated.function.arguments == call.function.arguments


def test_arguments_come_as_they_are_generated(client):
    chunks = client.chat.completions.create(**saying(HERMES), stream=True)
    parts = [
        part
        for chunk in chunks
        for choice in chunk.choices
        for part in choice.delta.tool_calls or []
    ]
    assert len(parts) > 5


def test_prose_then_several_calls_then_the_tools_answers(client):
    text = f"I look.\n\n{HERMES}\n{HERMES}"
    body = saying(text)
    message = client.chat.completions.create(**body).choices[0].message
    assert message.content == "I look."
    assert len({call.id for call in message.tool_calls}) == 2
    # What the SDK made of the answer goes back as it is.
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "rain"}
        for call in message.tool_calls
    ]
    messages = [*body["messages"], message, *results]
    again = client.chat.completions.create(
        **saying("It rains.", messages=messages)
    )
    assert again.choices[0].message.content == "It rains."
    assert again.choices[0].finish_reason == "stop"


def test_parallel_tool_calls_off_keeps_the_first(client):
    body = saying(f"{HERMES}\n{HERMES}", parallel_tool_calls=False)
    answer = client.chat.completions.create(**body).choices[0]
    assert len(answer.message.tool_calls) == 1
    assert answer.finish_reason == "tool_calls"


def test_what_is_no_call_is_content(client):
    unknown = HERMES.replace("weather", "weathers")
    for body in (saying(unknown), saying(HERMES, tool_choice="none")):
        answer = client.chat.completions.create(**body).choices[0]
        (text,) = body["extra_body"]["guided_choice"]
        assert answer.message.content == text
        assert answer.message.tool_calls is None
        assert answer.finish_reason == "stop"


def test_stop_strings_see_the_content_alone(client):
    answer = client.chat.completions.create(**saying(HERMES, stop=["weather"]))
    assert answer.choices[0].finish_reason == "tool_calls"


@pytest.fixture(scope="module")
def thinker(model, tmp_path_factory):
    """The default model, with a template that knows thoughts."""
    folder = link_model(model, tmp_path_factory.mktemp("thinks") / "model")
    template = (model / "chat_template.jinja").read_text()
    opened = "{% if enable_thinking %}<think>{% endif %}{# </think> #}"
    replace(folder, "chat_template.jinja", template.rstrip("\n") + opened)
    return folder


@pytest.fixture(scope="module")
def thinking_server(thinker):
    server = ingle_process.Server("--model", thinker, "--thinking", "off")
    yield server
    server.kill()


def prompt_of(server, **fields):
    body = {"messages": [{"role": "user", "content": "Hi"}]} | fields
    with server.post("/apply-template", body) as response:
        return json.loads(response.read())["prompt"]


def test_thinking_precedence_matrix(thinking_server):
    """By the template's variable, else by the effort, else by the flag."""
    for variable in (None, True, False):
        for effort in (None, "none", "high"):
            fields = {}
            if effort is not None:
                fields["reasoning_effort"] = effort
            if variable is not None:
                fields["chat_template_kwargs"] = {"enable_thinking": variable}
            expected = variable if variable is not None else effort == "high"
            prompt = prompt_of(thinking_server, **fields)
            assert prompt.endswith("<think>") == expected, fields


def ask_thinker(server, text, **fields):
    body = {
        "messages": [{"role": "user", "content": "Hi"}],
        "temperature": 0,
        "guided_choice": [text],
    }
    with server.post("/v1/chat/completions", body | fields) as response:
        return json.loads(response.read())


def test_thoughts_stand_apart(thinking_server):
    body = ask_thinker(thinking_server, "<think>Why?</think>So.")
    message = body["choices"][0]["message"]
    assert message["content"] == "So."
    assert message["reasoning_content"] == message["reasoning"] == "Why?"
    usage = body["usage"]
    counted = usage["completion_tokens_details"]["reasoning_tokens"]
    assert 0 < counted < usage["completion_tokens"]


def test_thought_that_the_prompt_has_begun(thinking_server):
    body = ask_thinker(
        thinking_server,
        "So.",
        reasoning_effort="high",
        max_completion_tokens=30,
    )
    message = body["choices"][0]["message"]
    assert message["reasoning"]
    assert "<think>" not in message["reasoning"]

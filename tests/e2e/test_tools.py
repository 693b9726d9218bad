"""Tool calls and thoughts as the official SDK reads them.

The default model calls no tools of its own accord: it is made to, with arguments
that leave it no choice. What it says of its own, a format makes it say.
"""

import json
import re

import openai
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
                "city": {"type": "string", "enum": ["Köln"]},
                "days": {"type": "integer", "enum": [2]},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
ARGUMENTS = {"city": "Köln", "days": 2}


def calling(**options):
    """A request whose answer is a call."""
    body = {
        "model": "any",
        "messages": [{"role": "user", "content": "Weather in Köln?"}],
        "temperature": 0,
        "tools": [WEATHER],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
    }
    return body | options


@pytest.fixture(scope="module")
def tags_client(model, tmp_path_factory):
    """Of a server whose model writes calls as tags."""
    folder = link_model(model, tmp_path_factory.mktemp("tags") / "model")
    template = (model / "chat_template.jinja").read_text()
    shown = "{# <tool_call> <function= #}"
    replace(folder, "chat_template.jinja", shown + template)
    server = ingle_process.Server("--model", folder)
    yield openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0
    )
    server.kill()


@pytest.mark.parametrize("name", ["client", "tags_client"])
def test_call_is_the_same_whole_streamed_and_by_the_helper(name, request):
    client = request.getfixturevalue(name)
    answer = client.chat.completions.create(**calling()).choices[0]
    (call,) = answer.message.tool_calls
    assert answer.finish_reason == "tool_calls"
    assert answer.message.content is None
    assert re.fullmatch("call_[0-9a-f]{8}", call.id)
    assert call.type == "function"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == ARGUMENTS

    chunks = client.chat.completions.create(**calling(), stream=True)
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

    with client.chat.completions.stream(**calling()) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.delta" in kinds
    assert final.finish_reason == "tool_calls"
    (accumulated,) = final.message.tool_calls
    assert accumulated.function.name == "weather"
    assert accumulated.function.arguments == call.function.arguments


def test_arguments_come_as_they_are_generated(client):
    chunks = client.chat.completions.create(**calling(), stream=True)
    parts = [
        part
        for chunk in chunks
        for choice in chunk.choices
        for part in choice.delta.tool_calls or []
    ]
    assert len(parts) > 3


def test_the_tools_answer_goes_back(client):
    body = calling()
    message = client.chat.completions.create(**body).choices[0].message
    (call,) = message.tool_calls
    # What the SDK made of the answer goes back as it is.
    result = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    messages = [*body["messages"], message, result]
    again = client.chat.completions.create(
        **calling(messages=messages, tool_choice="auto", max_tokens=20)
    )
    assert again.choices[0].message.content


def test_choice_none_gives_content(client):
    body = calling(tool_choice="none", max_tokens=20)
    answer = client.chat.completions.create(**body).choices[0]
    assert answer.message.content
    assert answer.message.tool_calls is None


def test_stop_strings_see_the_content_alone(client):
    answer = client.chat.completions.create(**calling(stop=["weather"]))
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

"""Tool calls that tool_choice asks for, by the official SDK. The default model
does not call tools by itself: a grammar makes it."""

import json
from typing import Literal

import openai
import pydantic
import pytest


class Weather(pydantic.BaseModel):
    """Says what the weather is like."""

    city: str = pydantic.Field(max_length=12)
    days: int = pydantic.Field(ge=1, le=7)
    unit: Literal["C", "F"]


WEATHER = openai.pydantic_function_tool(Weather)
NOW = {
    "type": "function",
    "function": {
        "name": "now",
        "parameters": {
            "type": "object",
            "properties": {"zone": {"enum": ["CET", "UTC"]}},
            "required": ["zone"],
            "additionalProperties": False,
        },
    },
}
NAMED = {"type": "function", "function": {"name": "now"}}


def options(**more):
    defaults = {
        "model": "any",
        "messages": [{"role": "user", "content": "Weather in Oslo?"}],
        "tools": [WEATHER, NOW],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_completion_tokens": 200,
    }
    return defaults | more


def check_call(call):
    if call.function.name == "Weather":
        Weather.model_validate_json(call.function.arguments)
    else:
        assert call.function.name == "now"
        arguments = json.loads(call.function.arguments)
        assert arguments["zone"] in ("CET", "UTC")
        assert len(arguments) == 1


@pytest.mark.parametrize("temperature", [0, 1, 2])
def test_required_gives_a_call(client, temperature):
    for seed in range(3):
        answer = client.chat.completions.create(
            **options(temperature=temperature, seed=seed)
        )
        choice = answer.choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content is None
        assert len(choice.message.tool_calls) == 1
        check_call(choice.message.tool_calls[0])


def test_a_named_tool_is_called(client):
    answer = client.chat.completions.create(**options(tool_choice=NAMED))
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "now"
    check_call(call)


def test_several_calls_are_valid_each(client):
    answer = client.chat.completions.create(
        **options(
            parallel_tool_calls=True, temperature=1.5, max_completion_tokens=300
        )
    )
    calls = answer.choices[0].message.tool_calls
    assert calls
    assert len({call.id for call in calls}) == len(calls)
    if answer.choices[0].finish_reason != "length":
        for call in calls:
            check_call(call)


def test_streamed_parts_are_the_same_call(client):
    whole = client.chat.completions.create(**options(temperature=0))
    (expected,) = whole.choices[0].message.tool_calls
    name, arguments = "", ""
    parts = 0
    for chunk in client.chat.completions.create(
        **options(temperature=0, stream=True)
    ):
        for choice in chunk.choices:
            assert not choice.delta.content
            for call in choice.delta.tool_calls or []:
                assert call.index == 0
                name += call.function.name or ""
                arguments += call.function.arguments or ""
                parts += 1
    assert name == expected.function.name
    assert arguments == expected.function.arguments
    assert parts > 2


def test_the_sdk_parses_pydantic_tools(client):
    answer = client.chat.completions.parse(
        **options(tools=[WEATHER], temperature=1)
    )
    (call,) = answer.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Weather)


def test_the_streaming_helper_gives_the_same(client):
    with client.chat.completions.stream(
        **options(tools=[WEATHER], temperature=1, seed=4)
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    (call,) = final.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Weather)


def test_auto_with_strict_tools_leaves_text_free(client):
    answer = client.chat.completions.create(
        **options(tool_choice="auto", tools=[WEATHER], temperature=0)
    )
    message = answer.choices[0].message
    assert message.content or message.tool_calls


def test_a_tool_that_is_not_there_is_refused(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            **options(
                tool_choice={"type": "function", "function": {"name": "x"}}
            )
        )
    assert refused.value.param == "tool_choice.function.name"

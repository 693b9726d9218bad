"""Answers that follow a schema, a regular expression, a choice or a grammar, by
the official SDK. The model is far too small to do so by itself."""

import enum
import json
import re
from typing import Literal, Optional, Union

import openai
import pydantic
import pytest

FRANCE = "What is the capital of France? Answer in JSON."
HOT = {"temperature": 2, "seed": 3}


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green\n\"quoted\""


class Place(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=12)
    kind: Literal["city", "river"]
    size: Optional[int] = pydantic.Field(ge=0, le=99999)


class Event(pydantic.BaseModel):
    title: str = pydantic.Field(max_length=20)
    # llguidance's dates know no leap years: February has 29 days.
    day: str = pydantic.Field(json_schema_extra={"format": "date"})
    colours: list[Colour] = pydantic.Field(min_length=1, max_length=3)
    places: list[Place] = pydantic.Field(min_length=1, max_length=2)
    value: Union[bool, Place, None]


class Tree(pydantic.BaseModel):
    leaf: bool
    children: list["Tree"] = pydantic.Field(max_length=2)


class Counts(pydantic.BaseModel):
    counts: dict[str, bool] = pydantic.Field(max_length=2)


def ask(client, text=FRANCE, **options):
    defaults = {
        "model": "any",
        "messages": [{"role": "user", "content": text}],
        "max_completion_tokens": 400,
    }
    return client.chat.completions.create(**(defaults | options))


def content(answer):
    assert answer.choices[0].finish_reason == "stop"
    return answer.choices[0].message.content


@pytest.mark.parametrize("temperature", [0, 0.7, 1.5, 2])
def test_parse_gives_the_pydantic_model(client, temperature):
    for seed in range(2):
        answer = client.chat.completions.parse(
            model="any",
            messages=[{"role": "user", "content": FRANCE}],
            response_format=Event,
            temperature=temperature,
            seed=seed,
            max_completion_tokens=600,
        )
        event = answer.choices[0].message.parsed
        assert isinstance(event, Event)
        assert 1 <= len(event.colours) <= 3
        assert re.fullmatch(r"\d{4}-[01]\d-[0-3]\d", event.day)
        assert answer.choices[0].finish_reason == "stop"


@pytest.mark.parametrize(
    "knobs",
    [
        {"top_p": 0.1},
        {"extra_body": {"top_k": 1}},
        {"extra_body": {"min_p": 0.5}},
        {"extra_body": {"xtc_probability": 1, "xtc_threshold": 0.01}},
        {"frequency_penalty": 2, "presence_penalty": 2},
        {"logit_bias": {"2": 100}},
    ],
)
@pytest.mark.parametrize("shape", [Place, Counts])
def test_schemas_hold_under_every_sampler(client, knobs, shape):
    for temperature in (0.7, 2):
        answer = ask(
            client,
            response_format={
                "type": "json_schema",
                "json_schema": {
                    "name": "shape",
                    "schema": shape.model_json_schema(),
                },
            },
            temperature=temperature,
            seed=1,
            max_completion_tokens=120,
            **knobs,
        )
        if answer.choices[0].finish_reason == "stop":
            shape.model_validate_json(answer.choices[0].message.content)


def test_recursive_models_hold(client):
    schema = Tree.model_json_schema()
    answer = ask(client, extra_body={"guided_json": schema}, temperature=0.7, max_completion_tokens=100)
    if answer.choices[0].finish_reason == "stop":
        Tree.model_validate_json(answer.choices[0].message.content)


def test_the_streaming_helper_parses_too(client):
    with client.chat.completions.stream(
        model="any",
        messages=[{"role": "user", "content": FRANCE}],
        response_format=Place,
        max_completion_tokens=200,
        **HOT,
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Place)
    deltas = [e.delta for e in events if e.type == "content.delta"]
    assert "".join(deltas) == final.choices[0].message.content
    assert len(deltas) > 3


def test_json_object_is_an_object(client):
    for seed in range(4):
        answer = ask(
            client,
            response_format={"type": "json_object"},
            temperature=0.7,
            seed=seed,
        )
        text = answer.choices[0].message.content
        if answer.choices[0].finish_reason == "stop":
            assert isinstance(json.loads(text), dict)
        else:
            assert text.startswith("{")


def test_guided_regex_choice_and_grammar(client):
    regex = r"\d{3}-[a-f]{2,4}"
    text = content(ask(client, extra_body={"guided_regex": regex}, **HOT))
    assert re.fullmatch(regex, text)
    choices = ["London", "Paris", "Rome"]
    text = content(
        ask(client, extra_body={"guided_choice": choices}, temperature=0)
    )
    assert text in choices
    for field in ("guided_grammar", "grammar"):
        lark = 'start: "(" start ")" | /[0-9]/'
        text = content(ask(client, extra_body={field: lark}, temperature=0.7))
        assert re.fullmatch(r"(\(*)[0-9](\)*)", text)
        assert text.count("(") == text.count(")")


def test_text_completions_are_guided_too(client):
    answer = client.completions.create(
        model="any",
        prompt="2 + 2 =",
        temperature=1.5,
        extra_body={"guided_regex": " [0-9]+\\."},
        max_tokens=30,
    )
    assert re.fullmatch(r" [0-9]+\.?", answer.choices[0].text)


def test_an_answer_that_is_cut_off_is_the_beginning_of_one(client):
    options = {"response_format": {"type": "json_object"}, "temperature": 0}
    whole = ask(client, **options).choices[0].message.content
    cut = ask(client, **options, max_completion_tokens=3).choices[0]
    assert cut.finish_reason == "length"
    assert whole.startswith(cut.message.content)


def test_n_answers_follow_it_each(client):
    answer = ask(
        client, extra_body={"guided_regex": "[a-z]{8}"}, n=3, temperature=1.5
    )
    texts = [choice.message.content for choice in answer.choices]
    assert all(re.fullmatch("[a-z]{8}", text) for text in texts)
    assert len(set(texts)) > 1


def test_rows_beside_one_another_are_as_alone(client):
    def guided():
        return content(ask(client, extra_body={"guided_regex": "[a-z ]{40}"}))

    free = {"temperature": 0, "max_completion_tokens": 20}
    alone = ask(client, **free).choices[0].message.content
    assert len(guided()) == 40
    assert ask(client, **free).choices[0].message.content == alone


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "x",
                        "schema": {"properties": {"a": {"not": {}}}},
                    },
                }
            },
            "response_format.json_schema.schema",
            'properties.a: Unimplemented keys: ["not"]',
        ),
        ({"guided_regex": "("}, "guided_regex", "unclosed group"),
        ({"guided_grammar": "start: x"}, "guided_grammar", "unknown name"),
        ({"guided_regex": "(a{1000}){1000}"}, "guided_regex", "too many"),
        (
            {"guided_json": {"multipleOf": 98765431}},
            "guided_json",
            "multipleOf",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(client, fields, param, words):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, extra_body=fields)
    assert refused.value.param == param
    assert words in refused.value.message
    assert ask(client, max_completion_tokens=2).choices[0].message.content

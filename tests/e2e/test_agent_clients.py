"""Programs that people run agents with."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys

import pydantic
import pydantic_ai
import pytest
from pydantic_ai.capabilities import PrepareOutputTools
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

CHAT_MODELS = """\
- model_id: ingle
  model_name: any
  api_base: {url}/v1
  supports_tools: true
  supports_schema: true
"""


class Forecast(pydantic.BaseModel):
    city: str = pydantic.Field(max_length=20)
    days: int = pydantic.Field(ge=1, le=7)


@pytest.fixture
def chat_model(server):
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="none")
    return OpenAIChatModel("any", provider=provider)


@pytest.fixture
def agent(chat_model):
    return pydantic_ai.Agent(
        chat_model, model_settings={"temperature": 0, "max_tokens": 40}
    )


def test_pydantic_ai_goes_on_with_a_conversation(agent):
    first = agent.run_sync("What is the capital of France?")
    assert "Paris" in first.output
    history = first.all_messages()
    second = agent.run_sync("Say that again.", message_history=history)
    assert second.output
    used = second.usage
    assert used.input_tokens > first.usage.input_tokens
    assert used.cache_read_tokens >= first.usage.input_tokens


def test_pydantic_ai_streams_the_text_that_it_gets_whole(agent):
    async def stream():
        async with agent.run_stream("What is the capital of France?") as run:
            text = run.stream_text(delta=True, debounce_by=None)
            return [piece async for piece in text]

    pieces = asyncio.run(stream())
    whole = agent.run_sync("What is the capital of France?").output
    assert len(pieces) > 1
    assert "".join(pieces) == whole


def test_pydantic_ai_offers_tools_that_are_not_needed(agent):
    @agent.tool_plain
    def weather(city: str, days: int = 1) -> str:
        """Tells the weather."""
        return f"{days} days of sun in {city}"

    assert "Paris" in agent.run_sync("What is the capital of France?").output


def test_pydantic_ai_calls_a_tool_and_answers_with_what_it_gave(chat_model):
    """One tool first, then the answer: each is forced by what is offered."""
    calls = []

    async def before(_, tool):
        return None if calls else tool

    async def after(_, tools):
        return tools if calls else []

    agent = pydantic_ai.Agent(
        chat_model,
        output_type=Forecast,
        capabilities=[PrepareOutputTools(after)],
        model_settings={
            "temperature": 0,
            "max_tokens": 200,
            "parallel_tool_calls": False,
        },
    )

    @agent.tool_plain(prepare=before)
    def weather(city: str, days: int = 1) -> str:
        """Tells the weather of a city."""
        calls.append((city, days))
        return f"{days} days of sun in {city}"

    run = agent.run_sync(
        "What will the weather be in Paris?",
        usage_limits=UsageLimits(request_limit=2),
    )
    assert len(calls) == 1
    assert "Paris" in calls[0][0]
    assert isinstance(run.output, Forecast)
    parts = [part for each in run.all_messages() for part in each.parts]
    called = [part for part in parts if isinstance(part, ToolCallPart)]
    assert [part.tool_name for part in called] == ["weather", "final_result"]
    returned = [part for part in parts if isinstance(part, ToolReturnPart)]
    assert returned[0].tool_call_id == called[0].tool_call_id
    assert "days of sun in" in returned[0].content


def llm(folder, *arguments):
    program = pathlib.Path(sys.executable).parent / "llm"
    done = subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ
        | {"LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "none"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("stream", [True, False])
def test_llm_goes_on_with_a_conversation(server, tmp_path, stream):
    models = CHAT_MODELS.format(url=server.url)
    (tmp_path / "extra-openai-models.yaml").write_text(models)
    options = ["-m", "ingle", "-o", "temperature", "0", "-o", "max_tokens", "40"]
    if not stream:
        options.append("--no-stream")
    options += ["-T", "llm_time"]  # offered, and not needed
    first = llm(tmp_path, "What is the capital of France?", *options)
    assert "Paris" in first
    assert llm(tmp_path, "-c", "Say that again.", *options).strip()


def test_llm_gets_what_a_schema_says(server, tmp_path):
    models = CHAT_MODELS.format(url=server.url)
    (tmp_path / "extra-openai-models.yaml").write_text(models)
    schema = Forecast.model_json_schema()
    schema["additionalProperties"] = False
    given = llm(
        tmp_path,
        "The weather in Paris.",
        *("-m", "ingle", "-o", "temperature", "0", "-o", "max_tokens", "200"),
        *("--schema", json.dumps(schema)),
    )
    assert Forecast.model_validate_json(given)

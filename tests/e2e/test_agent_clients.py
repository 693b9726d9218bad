"""Programs that people run agents with."""

import asyncio
import os
import pathlib
import subprocess
import sys

import pydantic_ai
import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

CHAT_MODELS = """\
- model_id: ingle
  model_name: any
  api_base: {url}/v1
  supports_tools: true
"""


@pytest.fixture
def agent(server):
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="none")
    return pydantic_ai.Agent(
        OpenAIChatModel("any", provider=provider),
        model_settings={"temperature": 0, "max_tokens": 40},
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

import os

import openai
import pytest

import ingle_process


def absent(what):
    """Skips; fails where INGLE_TEST_STRICT says that all has to be there."""
    if os.environ.get("INGLE_TEST_STRICT"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def binary():
    if not ingle_process.BINARY.exists():
        absent(f"no {ingle_process.BINARY}: run scripts/setup build")
    return ingle_process.BINARY


@pytest.fixture(scope="session")
def model(binary):
    if not (ingle_process.MODEL / "config.json").exists():
        absent(f"no {ingle_process.MODEL}: run scripts/setup model")
    return ingle_process.MODEL


@pytest.fixture
def start_server(model):
    """Starts servers that the test may end; what is left is ended after it."""
    servers = []

    def start(*arguments, model=model, **options):
        server = ingle_process.Server("--model", model, *arguments, **options)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="session")
def server(model):
    """One server for all tests that leave it as it was."""
    server = ingle_process.Server("--model", model)
    yield server
    alive = server.process.poll() is None
    code = server.end() if alive else server.process.returncode
    server.kill()
    assert (alive, code) == (True, 0), server.log()


@pytest.fixture(scope="session")
def client(server):
    return openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0
    )

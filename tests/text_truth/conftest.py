import os
import pathlib

import pytest

import probe

STATE = probe.ROOT / ".setup"
SOURCES = pathlib.Path(
    os.environ.get("INGLE_TEXT_SOURCES", STATE / "text-sources" / "models")
)
HOME = pathlib.Path(os.environ.get("INGLE_HOME", probe.ROOT / ".ingle"))
DEFAULT_MODEL = HOME / "models" / "SmolLM2-135M-Instruct"


def absent(what):
    """Skips; fails where INGLE_TEST_STRICT says that all has to be there."""
    if os.environ.get("INGLE_TEST_STRICT"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def ask():
    if not probe.BINARY.exists():
        absent(f"no {probe.BINARY}: run scripts/test text")
    return probe.ask


@pytest.fixture(scope="session")
def sources():
    """The folder of the vocabularies, with that of the templates in it."""
    if not (SOURCES / "templates").is_dir():
        absent(f"no {SOURCES}, which is fetched: run scripts/setup text")
    return SOURCES


@pytest.fixture(scope="session")
def default_model():
    if not (DEFAULT_MODEL / "tokenizer.json").exists():
        absent(f"no {DEFAULT_MODEL}: run scripts/setup model")
    return DEFAULT_MODEL


@pytest.fixture(scope="session")
def default_template(default_model):
    return (default_model / "chat_template.jinja").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def rebuilt(sources, ask, tmp_path_factory):
    """Name -> our answer, and where the tokenizer.json then is."""
    folder = tmp_path_factory.mktemp("rebuilt")
    paths = {
        path.name.removeprefix("ggml-vocab-").removesuffix(".gguf"): path
        for path in sorted(sources.glob("ggml-vocab-*.gguf"))
    }
    requests = [
        {
            "op": "rebuild",
            "gguf": str(path),
            "out": str(folder / f"{name}.json"),
        }
        for name, path in paths.items()
    ]
    answers = zip(paths, ask(requests))
    return {name: (answer, folder / f"{name}.json") for name, answer in answers}

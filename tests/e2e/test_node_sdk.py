"""The official openai package for Node; what it checks is in node/sdk.mjs."""

import pathlib
import subprocess

import node_process

SCRIPT = pathlib.Path(__file__).with_name("node") / "sdk.mjs"


def test_node_sdk(server):
    node_process.require()
    done = subprocess.run(
        [*node_process.COMMAND, SCRIPT.read_text(), server.url],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=node_process.FOLDER,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all good\n"

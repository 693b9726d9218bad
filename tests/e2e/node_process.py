"""Node, with the packages that scripts/setup brings for these tests."""

import pathlib
import sys

import conftest
import ingle_process

# Code that is given as an argument finds packages from the folder it runs in.
FOLDER = ingle_process.ROOT / ".setup" / "node"
COMMAND = [
    str(pathlib.Path(sys.executable).with_name("node")),
    "--input-type=module",
    "--eval",
]


def require():
    """Skips where the packages are absent."""
    if not (FOLDER / "node_modules").exists():
        conftest.absent(f"no {FOLDER}: run scripts/setup tests")

#!/usr/bin/env python3
"""Every test in a *_test.cpp of src/ is known to ctest, none is disabled.

Reads the sources, not the build files: a test file that no CMakeLists.txt
lists, or that the preprocessor empties, is found. Needs the tests built.
"""

import argparse
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_text  # noqa: E402
import tree  # noqa: E402

TEST = re.compile(r"^\s*(TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)


def known_tests(build):
    listing = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    return [test["name"] for test in json.loads(listing)["tests"]]


def is_known(names, folder, kind, suite, name):
    if kind in ("TEST", "TEST_F"):
        return f"{folder}.{suite}.{name}" in names
    # <folder>.[<prefix>/]<suite>[/<type>].<name>[/<value>]
    pattern = re.compile(
        rf"{folder}\.(?:\w+/)?{suite}(?:/\w+)?\.{name}(?:/.*)?"
    )
    return any(pattern.fullmatch(known) for known in names)


def findings(src, names):
    names = set(names)
    found = []
    tests = 0
    for where, files in tree.source_folders(src):
        for file in files:
            if not file.endswith("_test.cpp"):
                continue
            path = os.path.relpath(os.path.join(where, file), src)
            with open(os.path.join(src, path), encoding="utf-8") as source:
                text = cpp_text.code_only(source.read())
            folder = path.split(os.sep)[0]
            here = TEST.findall(text)
            tests += len(here)
            if not here:
                found.append(f"src/{path}: has no test")
            for kind, suite, name in here:
                if "DISABLED_" in (suite + name):
                    found.append(f"src/{path}: {suite}.{name} is disabled")
                elif not is_known(names, folder, kind, suite, name):
                    found.append(f"src/{path}: {suite}.{name} is not built")
    if tests == 0:
        found.append(f"{src}: no test; a gate that checks nothing fails")
    return found


def main():
    parser = argparse.ArgumentParser(description="Every test is built.")
    parser.add_argument("build", help="a build folder")
    parser.add_argument("--src", default=os.path.join(tree.repository_root(), "src"))
    options = parser.parse_args()
    found = findings(options.src, known_tests(options.build))
    for line in found:
        print(f"tests_are_built: {line}", file=sys.stderr)
    if not found:
        print("tests_are_built: all of them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

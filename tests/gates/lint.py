#!/usr/bin/env python3
"""Runs clang-tidy over the sources of src/, without the tests.

First it proves on lint_cases/ that every check of .clang-tidy is on. A source
that was clean is not read again until it, a header of ours that it includes,
its command line or the checks change.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tree  # noqa: E402

EXTRA = [
    # Sources are compiled by g++; clang does not know some of its flags.
    "--extra-arg=-Wno-unknown-warning-option",
    # std::stable_sort of libstdc++ 12 uses what it deprecates.
    "--extra-arg=-Wno-deprecated-declarations",
    # base/mutex.h: state that is touched without its lock.
    "--extra-arg=-Wthread-safety",
]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
FOUND = re.compile(r"(?:warning|error): .*\[([\w.,*-]+)\]$", re.MULTILINE)


class Linter:
    def __init__(self, root, build, clang_tidy):
        self.root = root
        self.build = build
        self.clang_tidy = clang_tidy
        self.stamps = os.path.join(build, "lint")
        os.makedirs(self.stamps, exist_ok=True)
        version = subprocess.run(
            [clang_tidy, "--version"], stdout=subprocess.PIPE, check=True
        ).stdout
        with open(os.path.join(root, ".clang-tidy"), "rb") as file:
            self.base = hashlib.sha256(version + file.read()).digest()

    def run(self, arguments):
        return subprocess.run(
            [self.clang_tidy, "--quiet", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.root,
        )

    def self_test(self):
        """Checks that are enabled but find nothing in lint_cases/."""
        case = os.path.join(self.root, "tests/gates/lint_cases/every_check.cpp")
        listed = self.run(["--list-checks", case]).stdout.split("\n")
        enabled = {line.strip() for line in listed if line.startswith("    ")}
        enabled.add("clang-diagnostic-unused-variable")
        enabled.add("clang-diagnostic-thread-safety-analysis")
        run = self.run([*EXTRA, case, "--", "-std=c++20", "-Wall", "-Wextra"])
        found = set()
        for names in FOUND.findall(run.stdout):
            found.update(names.split(","))
        missing = {name for name in enabled if name not in found}
        if not found:
            missing.add(f"clang-tidy itself: {run.stderr.strip()}")
        return sorted(missing)

    def sources(self):
        with open(os.path.join(self.build, "compile_commands.json")) as file:
            commands = json.load(file)
        src = os.path.join(self.root, "src") + os.sep
        return {
            entry["file"]: entry["command"]
            for entry in commands
            if entry["file"].startswith(src)
            and not entry["file"].endswith("_test.cpp")
        }

    def key(self, path, command):
        """A hash of all that the findings for `path` depend on."""
        digest = hashlib.sha256(self.base + command.encode())
        waiting, seen = [path], set()
        while waiting:
            name = waiting.pop()
            if name in seen or not os.path.exists(name):
                continue
            seen.add(name)
            with open(name, "rb") as file:
                content = file.read()
            digest.update(content)
            waiting += [
                os.path.join(self.root, "src", included)
                for included in INCLUDE.findall(content.decode())
            ]
        return digest.hexdigest()

    def check(self, path, command):
        """The findings for one source as text; empty where it is clean."""
        name = os.path.relpath(path, self.root).replace(os.sep, "_")
        stamp = os.path.join(self.stamps, name)
        key = self.key(path, command)
        if os.path.exists(stamp):
            with open(stamp) as file:
                if file.read() == key:
                    return ""
        run = self.run(["-p", self.build, *EXTRA, path])
        if run.returncode == 0:
            with open(stamp, "w") as file:
                file.write(key)
            return ""
        return run.stdout + run.stderr


def main():
    parser = argparse.ArgumentParser(description="clang-tidy over src/.")
    parser.add_argument("--build", required=True, help="has compile_commands.json")
    parser.add_argument("--clang-tidy", required=True)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    linter = Linter(
        tree.repository_root(), os.path.abspath(options.build), options.clang_tidy
    )

    missing = linter.self_test()
    for name in missing:
        print(f"lint: {name} finds nothing in lint_cases/", file=sys.stderr)
    sources = linter.sources()
    if not sources:
        print(f"lint: no source in {options.build}", file=sys.stderr)
    if missing or not sources:
        return 1

    dirty = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for output in pool.map(lambda item: linter.check(*item), sources.items()):
            if output:
                dirty += 1
                print(output, file=sys.stderr)
    print(f"lint: {len(sources) - dirty} files clean, {dirty} with findings")
    return 1 if dirty else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Words that the code of src/ may not use, but for the files named here."""

import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_text  # noqa: E402
import tree  # noqa: E402


class Rule:
    def __init__(self, pattern, instead, allowed=()):
        self.pattern = re.compile(pattern)
        self.instead = instead
        self.allowed = allowed  # files, or folders with a slash at the end


RULES = (
    Rule(
        r"\bstd::(?:cout|cerr|clog)\b|\b(?:printf|fprintf|puts|fputs)\s*\(",
        "log with base/log.h; only commands print",
        ("cli/",),
    ),
    Rule(r"\babort\s*\(|\bstd::terminate\s*\(", "return a Status"),
    Rule(
        r"(?<![\w_])assert\s*\(",
        "return a Status; an assert is for our own bugs, never for input",
        # Where only a caller of ours can break the contract.
        (
            "base/status.h",
            "cache/array_kv_cache.cpp",
            "cache/array_recurrent_cache.cpp",
            "cache/block_kv_cache.cpp",
            "cache/recurrent_cache.cpp",
        ),
    ),
    Rule(
        r"\b(?:exit|_exit|quick_exit)\s*\(",
        "return to main",
        ("cli/",),
    ),
    Rule(
        r"\bgetenv\s*\(",
        "pass it in from main",
        ("cli/",),
    ),
)


def is_allowed(rule, path):
    return any(
        path == entry or (entry.endswith("/") and path.startswith(entry))
        for entry in rule.allowed
    )


def findings(src):
    found = []
    checked = 0
    paths = []
    for where, names in tree.source_folders(src):
        for name in names:
            path = os.path.relpath(os.path.join(where, name), src)
            paths.append(path.replace(os.sep, "/"))
    for path in paths:
        if not path.endswith((".h", ".cpp")):
            continue
        if path.endswith("_test.cpp") or "/testing/" in path:
            continue
        checked += 1
        with open(os.path.join(src, path), encoding="utf-8") as file:
            lines = cpp_text.code_only(file.read()).split("\n")
        for number, line in enumerate(lines, 1):
            for rule in RULES:
                match = rule.pattern.search(line)
                if match and not is_allowed(rule, path):
                    found.append(
                        f"src/{path}:{number}: {match.group().strip()}: "
                        f"{rule.instead}"
                    )
    for rule in RULES:
        for entry in rule.allowed:
            if not entry.endswith("/") and entry not in paths:
                found.append(f"policy.py allows src/{entry}, which is not there")
    if checked == 0:
        found.append(f"{src}: no source file; a gate that checks nothing fails")
    return found


def main():
    parser = argparse.ArgumentParser(description="Forbidden words in src/.")
    parser.add_argument("--src", default=os.path.join(tree.repository_root(), "src"))
    found = findings(parser.parse_args().src)
    for line in found:
        print(f"policy: {line}", file=sys.stderr)
    if not found:
        print("policy: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Holds the includes of src/ against the edges that the design allows.

An edge that the build would let through (a private dependency, a header that
is only there by accident) fails here. Lower folders never include higher ones.
Test code (*_test.cpp, testing/) may include all that is lower; nothing else
includes testing/.
"""

import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tree  # noqa: E402

# Folder -> what it may include beside itself, lowest folder first: a folder
# (any header of it) or one header by name.
MODEL_FACE = (
    "engine/adapters.h", "engine/engine_stats.h", "engine/generator.h",
    "engine/generator_errors.h", "engine/served_model.h",
)  # fmt: skip
EDGES = {
    "base": (),
    "text": ("base",),
    "weights": ("base",),
    "hub": ("base", "weights"),
    "import": ("base", "text", "weights"),
    "kernels": ("base",),
    "cache": ("base", "kernels"),
    "model": ("base", "weights", "kernels", "cache"),
    "engine": ("base", "text", "weights", "kernels", "cache", "model"),
    "api": ("base", "text", *MODEL_FACE),
    "http": ("base", "text", "api", *MODEL_FACE),
    "cli": (
        "base", "text", "weights", "hub", "import", "kernels", "cache", "model",
        "engine", "api", "http",
    ),
}  # fmt: skip

# Libraries that only some folders may see.
LIBRARIES = {
    "mlx/": {"cache", "model", "engine", "cli"},
    "nlohmann/": {"weights", "hub", "import", "model", "engine", "api", "cli"},
    "boost/": {"http", "cli"},
    "CLI/": {"cli"},
    "curl/": {"hub"},
    "openssl/": {"hub"},
    "prometheus/": {"http"},
    "spdlog/": {"base"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def check_include(path, quoted, angled):
    """Why the file at `path` (under src/) may not have this include, or None."""
    folder = path.split("/")[0]
    is_test = path.endswith("_test.cpp") or "/testing/" in path
    if quoted is None:
        for library, folders in LIBRARIES.items():
            if is_test or folder in folders:
                continue
            if angled.startswith(library):
                return f"<{angled}>: {library} is for {', '.join(sorted(folders))}"
        if angled.split("/")[0] in EDGES and "/" in angled:
            return f"<{angled}>: our own headers are included with quotes"
        return None
    if ".." in quoted.split("/"):
        return f'"{quoted}": no path upwards; write "<folder>/<file>.h"'
    target = quoted.split("/")[0]
    if "/" not in quoted or target not in EDGES:
        return f'"{quoted}": write "<folder>/<file>.h" with a folder of src/'
    if "/testing/" in quoted and not is_test:
        return f'"{quoted}": testing/ is for tests'
    allowed = EDGES[folder]
    if is_test:
        order = list(EDGES)
        allowed = order[: order.index(folder)]
    if target == folder or target in allowed or quoted in allowed:
        return None
    return f'"{quoted}": {folder}/ may include {", ".join(allowed) or "nothing"}'


def findings(src):
    found = []
    checked = 0
    for where, names in tree.source_folders(src):
        for name in names:
            if not name.endswith((".h", ".cpp")):
                continue
            full = os.path.join(where, name)
            path = os.path.relpath(full, src).replace(os.sep, "/")
            if path.split("/")[0] not in EDGES:
                found.append(f"src/{path}: its folder has no row in EDGES")
                continue
            checked += 1
            with open(full, encoding="utf-8") as file:
                text = file.read()
            for match in INCLUDE.finditer(text):
                reason = check_include(path, *match.groups())
                if reason:
                    line = text.count("\n", 0, match.start(1 if match[1] else 2)) + 1
                    found.append(f"src/{path}:{line}: {reason}")
    if checked == 0:
        found.append(f"{src}: no source file; a gate that checks nothing fails")
    return found


def main():
    parser = argparse.ArgumentParser(description="Include edges of src/.")
    parser.add_argument("--src", default=os.path.join(tree.repository_root(), "src"))
    found = findings(parser.parse_args().src)
    for line in found:
        print(f"include_edges: {line}", file=sys.stderr)
    if not found:
        print("include_edges: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

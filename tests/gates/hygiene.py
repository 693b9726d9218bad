#!/usr/bin/env python3
"""Keeps the repository small, readable and mapped.

Fails, with one line per finding, where a tracked file is too big, binary or
too long, where a document or a root entry is missing from its map, or where a
clone would be too large.

  hygiene.py            the work tree
  hygiene.py --staged   what the next commit will hold (for pre-commit)
"""

import argparse
import fnmatch
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_text  # noqa: E402
import tree  # noqa: E402

MAX_BYTES = 1_000_000
MAX_CLONE_BYTES = 30_000_000
MAX_FILE_LINES = 1000
MAX_FUNCTION_LINES = 120

BINARY_SUFFIXES = frozenset(
    ".a .bin .dll .dylib .exe .gguf .gz .metallib .npy .npz .o .onnx .pt .pth "
    ".safetensors .so .tar .whl .xz .zip".split()
)
CODE_SUFFIXES = frozenset(".c .cpp .h .hpp .py .rs .sh".split())
CPP_SUFFIXES = frozenset(".c .cpp .h .hpp".split())

ALLOWLIST = "tests/gates/allowlist"
BROKEN_ON_PURPOSE = "tests/gates/lint_cases/"
DOCS_MAP = "docs/README.md"
ROOT_MAP = "README.md"

# What only one machine has, and notes that must not land.
FORBIDDEN_TEXT = (
    (
        re.compile(rb"(?<![\w./~$}-])/(?:work|root|farm)/"),
        "a path of one machine",
    ),
    (re.compile(rb"TODO\(now\)"), "a TODO that was for now"),
)


class Allowlist:
    """Exceptions to the size and suffix rules, each with a cap."""

    def __init__(self, text):
        self.findings = []
        self.entries = []  # (pattern, cap in bytes)
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = line.split(None, 2)
            if len(fields) < 3 or not fields[1].isdigit():
                self.findings.append(
                    f"{ALLOWLIST}:{number}: write: path cap-in-bytes reason"
                )
                continue
            self.entries.append((fields[0], int(fields[1])))

    def cap(self, path):
        """Bytes that `path` may have, or None where it is not listed."""
        caps = [
            cap
            for pattern, cap in self.entries
            if fnmatch.fnmatchcase(path, pattern)
        ]
        return max(caps, default=None)

    def stale(self, paths):
        return [
            f"{ALLOWLIST}: '{pattern}' matches no tracked file; remove it"
            for pattern, _ in self.entries
            if not fnmatch.filter(paths, pattern)
        ]


def check_sizes(files, allowlist):
    for path in files.paths:
        size = files.size(path)
        cap = allowlist.cap(path)
        if cap is not None:
            if size > cap:
                yield f"{path}: {size} bytes, its cap in {ALLOWLIST} is {cap}"
            continue
        if size > MAX_BYTES:
            yield f"{path}: {size} bytes, the limit is {MAX_BYTES}"
        suffix = os.path.splitext(path)[1].lower()
        if suffix in BINARY_SUFFIXES:
            yield f"{path}: {suffix} files are not tracked"


def check_no_lfs(files):
    for path in files.paths:
        if os.path.basename(path) == ".gitattributes":
            if b"filter=lfs" in files.read(path):
                yield f"{path}: large file storage is not used here"


def check_docs_map(files):
    docs = {
        path
        for path in files.paths
        if path.startswith("docs/") and path.endswith(".md")
    } - {DOCS_MAP}
    if DOCS_MAP not in files.paths:
        if docs:
            yield f"{DOCS_MAP}: missing; it lists every document"
        return
    text = files.read(DOCS_MAP).decode()
    listed = {"docs/" + name for name in re.findall(r"\]\(([^)#:]+\.md)\)", text)}
    for path in sorted(docs - listed):
        yield f"{path}: not listed in {DOCS_MAP}"
    for path in sorted(listed - docs):
        if os.path.normpath(path) not in files.paths:
            yield f"{DOCS_MAP}: lists {path}, which is not there"


def layout_entries(readme):
    """Names in the list items of README's section Layout: "- `a`, `b/`: ..."."""
    section = re.search(r"^## Layout$(.*?)(?=^## |\Z)", readme, re.M | re.S)
    if not section:
        return None
    names = set()
    for item in re.findall(r"^- ((?:`[^`]+`(?:, )?)+)", section.group(1), re.M):
        names.update(name.rstrip("/") for name in re.findall(r"`([^`]+)`", item))
    return names


def check_root_map(files):
    entries = {path.split("/", 1)[0] for path in files.paths}
    if ROOT_MAP not in files.paths:
        yield f"{ROOT_MAP}: missing; its section Layout lists the root's entries"
        return
    listed = layout_entries(files.read(ROOT_MAP).decode())
    if listed is None:
        yield f"{ROOT_MAP}: has no section '## Layout'"
        return
    for name in sorted(entries - listed - {ROOT_MAP}):
        yield f"{name}: not in the Layout section of {ROOT_MAP}"
    for name in sorted(listed - entries):
        yield f"{ROOT_MAP}: its Layout lists {name}, which is not there"


def check_lengths(files):
    for path in files.paths:
        suffix = os.path.splitext(path)[1]
        if suffix not in CODE_SUFFIXES and not path.startswith("scripts/"):
            continue
        text = files.read(path).decode()
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            yield f"{path}: {lines} lines, the limit is {MAX_FILE_LINES}"
        if suffix in CPP_SUFFIXES and not path.startswith(BROKEN_ON_PURPOSE):
            for start, length in cpp_text.functions(text):
                if length > MAX_FUNCTION_LINES:
                    yield (
                        f"{path}:{start}: a function of {length} lines, "
                        f"the limit is {MAX_FUNCTION_LINES}"
                    )


def check_text(files):
    for path in files.paths:
        if files.size(path) > MAX_BYTES:
            continue  # has its own finding, or is allowed
        for number, line in enumerate(files.read(path).split(b"\n"), 1):
            for pattern, what in FORBIDDEN_TEXT:
                if pattern.search(line):
                    yield f"{path}:{number}: {what}"


def check_clone_size(root):
    if not tree.git(root, "rev-list", "-n", "1", "--all"):
        return
    usage = tree.git(root, "rev-list", "--objects", "--disk-usage", "HEAD")
    if int(usage) > MAX_CLONE_BYTES:
        yield (
            f"a clone has {int(usage)} bytes of objects, "
            f"the limit is {MAX_CLONE_BYTES}"
        )


def findings(root, staged):
    files = tree.Index(root) if staged else tree.WorkTree(root)
    has_allowlist = ALLOWLIST in files.paths
    allowlist = Allowlist(
        files.read(ALLOWLIST).decode() if has_allowlist else ""
    )
    found = list(allowlist.findings)
    found += allowlist.stale(files.paths)
    found += check_sizes(files, allowlist)
    found += check_no_lfs(files)
    found += check_docs_map(files)
    found += check_root_map(files)
    found += check_lengths(files)
    found += check_text(files)
    found += check_clone_size(root)
    return found


def main():
    parser = argparse.ArgumentParser(description="Repository hygiene.")
    parser.add_argument("--staged", action="store_true", help="check the index")
    parser.add_argument("--root", default=tree.repository_root())
    options = parser.parse_args()
    found = findings(options.root, options.staged)
    for line in found:
        print(f"hygiene: {line}", file=sys.stderr)
    if not found:
        print("hygiene: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

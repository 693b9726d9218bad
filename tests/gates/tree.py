"""What git tracks, as it stands in the work tree or in the index."""

import os
import subprocess


def git(root, *arguments, text=None):
    """The output of a git command as bytes. Fails if the command fails."""
    return subprocess.run(
        ["git", "-C", root, *arguments],
        input=text,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


class WorkTree:
    """Tracked files with the content that they have on disk."""

    def __init__(self, root):
        self.root = root
        listed = git(root, "ls-files", "-z").decode().split("\0")
        self.paths = sorted(
            {path for path in listed if path and os.path.lexists(self._at(path))}
        )

    def _at(self, path):
        return os.path.join(self.root, path)

    def size(self, path):
        return os.lstat(self._at(path)).st_size

    def read(self, path):
        if os.path.islink(self._at(path)):
            return os.readlink(self._at(path)).encode()
        with open(self._at(path), "rb") as file:
            return file.read()


class Index:
    """Tracked files with the content that the next commit will have."""

    def __init__(self, root):
        self.root = root
        self._objects = {}
        for row in git(root, "ls-files", "-s", "-z").decode().split("\0"):
            if row:
                entry, path = row.split("\t", 1)
                self._objects[path] = entry.split()[1]
        self.paths = sorted(self._objects)
        names = "\n".join(self._objects[path] for path in self.paths) + "\n"
        sizes = git(
            root, "cat-file", "--batch-check=%(objectsize)", text=names.encode()
        ).split()
        self._sizes = dict(zip(self.paths, map(int, sizes))) if self.paths else {}

    def size(self, path):
        return self._sizes[path]

    def read(self, path):
        return git(self.root, "cat-file", "blob", self._objects[path])


def source_folders(src):
    """(folder, names of its files) below `src`, without build output."""
    found = []
    for where, folders, names in os.walk(src):
        folders[:] = [name for name in folders if name != "target"]
        found.append((where, sorted(names)))
    return sorted(found)


def repository_root():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.dirname(os.path.dirname(here))

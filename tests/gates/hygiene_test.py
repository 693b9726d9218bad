"""The hygiene gate on small repositories made for each test."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_text  # noqa: E402
import hygiene  # noqa: E402
import tree  # noqa: E402

# A hook's environment points git at the repository that runs it.
for name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[name]

README = "# x\n\n## Layout\n- `README.md`, `docs/`: words\n- `tests/`: `more` words\n"


class Hygiene(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.root = self._folder.name
        self.git("init", "-q")
        self.git("config", "user.name", "test")
        self.git("config", "user.email", "test@example.com")
        self.add("README.md", README)
        self.add("docs/README.md", "# Map\n- [Format](formats/a.md): words\n")
        self.add("docs/formats/a.md", "words\n")
        self.add(hygiene.ALLOWLIST, "# path cap reason\n")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *arguments], check=True)

    def write(self, path, content):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)

    def add(self, path, content):
        self.write(path, content)
        self.git("add", "--force", path)

    def expect(self, *fragments, staged=False):
        """One finding for each fragment, in any order, and no other."""
        found = hygiene.findings(self.root, staged)
        self.assertEqual(len(found), len(fragments), found)
        for fragment in fragments:
            self.assertTrue(any(fragment in line for line in found), found)

    def test_clean_repository_passes(self):
        self.expect()
        self.git("commit", "-q", "-m", "first")
        self.expect()
        self.expect(staged=True)

    def test_hygiene_rejects_big_and_binary(self):
        self.add("tests/big.txt", b"x" * (hygiene.MAX_BYTES + 1))
        self.expect("tests/big.txt: 1000001 bytes")
        for suffix in ("bin", "safetensors", "dylib", "gguf", "metallib"):
            self.add(f"tests/small.{suffix}", "x")
        self.expect(
            "tests/big.txt", "small.bin", "small.safetensors", "small.dylib",
            "small.gguf", "small.metallib",
        )  # fmt: skip

    def test_command_fails_where_there_is_a_finding(self):
        command = [sys.executable, hygiene.__file__, "--root", self.root]
        self.assertEqual(subprocess.run(command).returncode, 0)
        self.add("tests/small.gguf", "x")
        run = subprocess.run(command, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"tests/small.gguf", run.stderr)

    def test_allowlist_cap_enforced(self):
        self.add("tests/golden.bin", b"x" * 64)
        self.add(hygiene.ALLOWLIST, "tests/golden.bin 64 rope tables\n")
        self.expect()
        self.add("tests/golden.bin", b"x" * 65)
        self.expect("golden.bin: 65 bytes, its cap")

    def test_allowlist_needs_cap_and_reason(self):
        self.add("tests/golden.bin", "x")
        for entry in ("tests/golden.bin", "tests/golden.bin 64", "tests/golden.bin big words"):
            self.add(hygiene.ALLOWLIST, entry + "\n")
            self.expect("allowlist:1: write", ".bin files are not tracked")

    def test_allowlist_entry_without_file_is_an_error(self):
        self.add(hygiene.ALLOWLIST, "tests/gone.bin 64 words\n")
        self.expect("matches no tracked file")

    def test_staged_mode(self):
        self.git("commit", "-q", "-m", "first")
        self.add("tests/model.gguf", "x")
        os.remove(os.path.join(self.root, "tests/model.gguf"))
        self.expect()  # not in the work tree
        self.expect("model.gguf", staged=True)
        self.git("rm", "-q", "--cached", "tests/model.gguf")
        self.write("tests/gates/allowlist", "tests/unstaged 1 words\n")
        self.expect(staged=True)
        self.expect("matches no tracked file")

    def test_docs_map_complete(self):
        self.add("docs/decisions/001.md", "words\n")
        self.expect("docs/decisions/001.md: not listed in docs/README.md")
        self.add("docs/README.md", "[a](formats/a.md) [b](decisions/001.md)\n")
        self.expect()
        self.git("rm", "-q", "--force", "docs/formats/a.md")
        self.expect("lists docs/formats/a.md, which is not there")

    def test_root_map_complete(self):
        self.add("stray.json", "{}")
        self.expect("stray.json: not in the Layout section")
        self.git("rm", "-q", "--cached", "stray.json")
        self.add("README.md", README + "- `bench/`: words\n")
        self.expect("lists bench, which is not there")
        self.add("README.md", "# x\n")
        self.expect("no section '## Layout'")

    def test_large_clone_is_found(self):
        self.git("commit", "-q", "-m", "first")
        limit = hygiene.MAX_CLONE_BYTES
        self.addCleanup(setattr, hygiene, "MAX_CLONE_BYTES", limit)
        hygiene.MAX_CLONE_BYTES = 10
        self.expect("a clone has")

    def test_long_file_and_long_function_are_found(self):
        body = "  f();\n"
        self.add("tests/ok.cpp", "void f() {\n" + body * 118 + "}\n")
        self.expect()
        self.add("tests/long.cpp", "\nvoid f(\n  int) {\n" + body * 119 + "}\n")
        self.expect("tests/long.cpp:3: a function of 121 lines")
        self.add("tests/long.cpp", "\n" * 1001)
        self.expect("tests/long.cpp: 1001 lines")

    def test_machine_paths_and_notes_are_found(self):
        self.add("tests/a.sh", "cd /" + "root/x\n# TODO" + "(now)\n")
        self.expect("a.sh:1: a path of one machine", "a.sh:2: a TODO")
        self.add("tests/a.sh", "cd $root/" + "work/x; ls ~/" + "root/x; see docs/" + "work/x\n")
        self.expect()

    def test_large_file_storage_is_found(self):
        self.add("tests/.gitattributes", "*.x filter=" + "lfs diff=lfs\n")
        self.expect("large file storage")


class CppText(unittest.TestCase):
    def test_functions_are_told_from_types_tables_and_control(self):
        text = (
            "namespace a {\n"
            "struct S : T {\n"
            "  int f() const {\n"
            "    if (x) {\n"
            "    }\n"
            "    // } }\n"
            '    return "}" + R"x(})x" + \'}\';\n'
            "  }\n"
            "};\n"
            "const int kTable[] = {\n"
            "  1,\n"
            "};\n"
            "} // namespace a\n"
        )
        self.assertEqual(cpp_text.functions(text), [(3, 6)])

    def test_digit_separators_are_no_literals(self):
        self.assertIn("f()", cpp_text.code_only("1'000; f(); 2'000;"))


class WorkTreeMode(unittest.TestCase):
    def test_deleted_but_tracked_files_are_skipped(self):
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "-C", root, "init", "-q"], check=True)
            path = os.path.join(root, "a")
            with open(path, "w"):
                pass
            subprocess.run(["git", "-C", root, "add", "a"], check=True)
            os.remove(path)
            self.assertEqual(tree.WorkTree(root).paths, [])


if __name__ == "__main__":
    unittest.main()

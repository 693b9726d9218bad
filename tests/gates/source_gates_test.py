"""include_edges, policy and tests_are_built find what they are made for."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import include_edges  # noqa: E402
import policy  # noqa: E402
import tests_are_built  # noqa: E402


class SourceGate(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.src = self._folder.name

    def write(self, path, text):
        full = os.path.join(self.src, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as file:
            file.write(text)

    def assert_findings(self, found, *fragments):
        self.assertEqual(len(found), len(fragments), found)
        for fragment in fragments:
            self.assertTrue(any(fragment in line for line in found), found)


class IncludeEdges(SourceGate):
    def expect(self, *fragments):
        self.assert_findings(include_edges.findings(self.src), *fragments)

    def test_allowed_edges_pass(self):
        self.write("base/a.h", "#include <vector>\n")
        self.write("text/a.cpp", '#include "text/a.h"\n#include "base/a.h"\n')
        self.write("http/a.cpp", '#include "engine/generator.h"\n')
        self.expect()

    def test_edge_to_a_higher_folder_is_found(self):
        self.write("base/a.h", '\n#include "engine/generator.h"\n')
        self.expect('src/base/a.h:2: "engine/generator.h"')

    def test_header_behind_the_narrow_face_is_found(self):
        self.write("http/a.cpp", '#include "engine/scheduler.h"\n')
        self.expect("engine/scheduler.h")

    def test_path_upwards_is_found(self):
        self.write("text/a.cpp", '#include "../base/a.h"\n')
        self.expect("no path upwards")

    def test_path_without_folder_is_found(self):
        self.write("text/a.cpp", '#include "a.h"\n')
        self.expect('"a.h": write')

    def test_library_out_of_place_is_found(self):
        self.write("http/a.cpp", "#include <mlx/mlx.h>\n# include <nlohmann/json.hpp>\n")
        self.expect("<mlx/mlx.h>", "<nlohmann/json.hpp>")

    def test_test_code_sees_what_is_lower_and_testing(self):
        self.write("model/a_test.cpp", '#include "text/testing/a.h"\n')
        self.write("text/testing/a.cpp", "#include <nlohmann/json.hpp>\n")
        self.expect()
        self.write("model/a.cpp", '#include "model/testing/a.h"\n')
        self.write("base/a_test.cpp", '#include "text/a.h"\n')
        self.expect("model/testing/a.h", "text/a.h")

    def test_unknown_folder_is_found(self):
        self.write("utils/a.h", "")
        self.write("base/a.h", "")
        self.expect("src/utils/a.h")

    def test_nothing_to_check_is_a_failure(self):
        self.expect("no source file")


class Policy(SourceGate):
    def setUp(self):
        super().setUp()
        for path in policy.RULES[2].allowed:
            self.write(path, "assert(is_ok());\n")

    def expect(self, *fragments):
        self.assert_findings(policy.findings(self.src), *fragments)

    def test_allowed_files_and_tests_pass(self):
        self.write("cli/main.cpp", "std::cout << 1;\n")
        self.write("base/a_test.cpp", "abort();\n")
        self.write("base/a.cpp", "// abort()\nstatic_assert(true); f.puts_x();\n")
        self.expect()

    def test_each_forbidden_word_is_found(self):
        self.write(
            "base/a.cpp",
            "std::cout << 1;\nstd::abort();\nassert(x);\nexit(1);\ngetenv(n);\n",
        )
        self.expect("std::cout", "abort", "assert", "exit", "getenv")

    def test_allowed_file_that_is_gone_is_found(self):
        os.remove(os.path.join(self.src, "base/status.h"))
        self.write("base/a.h", "")
        self.expect("src/base/status.h, which is not there")


class TestsAreBuilt(SourceGate):
    def expect(self, names, *fragments):
        self.assert_findings(tests_are_built.findings(self.src, names), *fragments)

    def test_built_tests_pass(self):
        self.write("base/a_test.cpp", "TEST(A, B) {}\nTEST_P(P,\n    C) {}\n")
        self.expect(["base.A.B", "base.All/P.C/posix"])

    def test_test_that_no_build_file_lists_is_found(self):
        self.write("base/a_test.cpp", "TEST(A, B) {}\nTEST_P(P, C) {}\n")
        self.expect(["text.A.B", "base.All/P.D/1"], "A.B is not built", "P.C")

    def test_disabled_test_is_found(self):
        self.write("base/a_test.cpp", "TEST(A, DISABLED_B) {}\n")
        self.expect(["base.A.DISABLED_B"], "is disabled")

    def test_nothing_to_check_is_a_failure(self):
        self.expect([], "no test")


if __name__ == "__main__":
    unittest.main()

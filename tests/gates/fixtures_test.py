"""Tests that need the default model skip cleanly where it is not there."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tree  # noqa: E402

ROOT = tree.repository_root()
PYTHON = os.path.join(ROOT, ".setup/venv-test/bin/python3")


@unittest.skipUnless(os.path.exists(PYTHON), "run scripts/setup tests")
class Fixtures(unittest.TestCase):
    def test_fixture_absent_skips_cleanly(self):
        environment = dict(os.environ, INGLE_HOME=os.path.join(ROOT, "absent"))
        environment.pop("INGLE_TEST_STRICT", None)
        command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*command, "tests/e2e/test_chat.py", "tests/e2e/test_golden.py"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertRegex(run.stdout, r"\n\d+ skipped")
        # Where all has to be there, the same absence fails.
        environment["INGLE_TEST_STRICT"] = "1"
        strict = subprocess.run(
            [*command, "tests/e2e/test_chat.py"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
        )
        self.assertEqual(strict.returncode, 1)


if __name__ == "__main__":
    unittest.main()

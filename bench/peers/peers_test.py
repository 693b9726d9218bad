#!/usr/bin/env python3
"""What bench/peers/run and kl make of what others print, without running
them."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import contestants  # noqa: E402
import divergence  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
from contestants import Test  # noqa: E402

MODEL = pathlib.Path("models/q4_1.gguf")
NATIVE = pathlib.Path("peers/native/bin")


def run(output):
    return machine.Run(output, "", 1.0, 1000, 0.0, {})


def figure(rate, peak=1000, disturbed=False):
    mode = {"meet_ns": 50, "read_gb_s": [30, 40]}
    return {
        "tok_s": rate, "peak_bytes": peak, "disturbed": disturbed, "mode": mode,
    }  # fmt: skip


def pairs(command):
    """Flag -> value, as text."""
    words = [str(word) for word in command]
    return {a: b for a, b in zip(words, words[1:]) if a.startswith("-")}


class Names(unittest.TestCase):
    def test_tests_are_called_as_ingle_bench_calls_them(self):
        names = [
            Test(prompt=512).name,
            Test(gen=64).name,
            Test(gen=64, depth=8192).name,
            Test(gen=64, depth=64, batch=8).name,
        ]
        self.assertEqual(names, ["pp512", "tg64", "tg64@d8192", "tg64@d64 b8"])

    def test_build_without_amx_is_told_from_the_other(self):
        other = pathlib.Path("peers/no-amx/bin")
        self.assertEqual(
            contestants.LlamaCpp(NATIVE, MODEL, 2).name, "llama.cpp Q4_1"
        )
        self.assertEqual(
            contestants.LlamaCpp(other, MODEL, 2).name, "llama.cpp Q4_1 no-amx"
        )

    def test_a_file_is_called_by_its_format(self):
        model = pathlib.Path("gemma-3-270m-q4_k_m.gguf")
        self.assertEqual(
            contestants.LlamaCpp(NATIVE, model, 2).name, "llama.cpp Q4_K_M"
        )


class Commands(unittest.TestCase):
    def test_both_sides_get_the_same_sizes_and_threads(self):
        for test in (Test(prompt=512), Test(gen=64, depth=8192)):
            ours = pairs(contestants.Ingle("ingle", "folder", "near", 2).command(test))
            theirs = pairs(contestants.LlamaCpp(NATIVE, MODEL, 2).command(test))
            self.assertEqual(ours["--threads"], theirs["-t"])
            self.assertEqual(ours["--repeat"], theirs["-r"])
            self.assertEqual(ours.get("--prompt", "0"), theirs["-p"])
            self.assertEqual(ours.get("--gen", "0"), theirs["-n"])
            self.assertEqual(ours.get("--depth", "0"), theirs["-d"])

    def test_batch_is_measured_by_llama_cpps_batched_bench(self):
        peer = contestants.LlamaCpp(NATIVE, MODEL, 2).with_flash(True)
        command = peer.command(Test(gen=64, batch=8))
        self.assertEqual(command[0].name, "llama-batched-bench")
        flags = pairs(command)
        self.assertEqual(flags["-npl"], "8,8,8")
        self.assertEqual(flags["-fa"], "on")


class Outputs(unittest.TestCase):
    def test_ingles_rate_is_that_of_the_test(self):
        ingle = contestants.Ingle("ingle", "folder", "near", 2)
        output = (
            '{"results": [{"test": "tg64", "tok_s": 100, "overhead_pct": 1,'
            ' "sampler_pct": 0.1},'
            '{"test": "tg64+sample", "tok_s": 90, "sampler_pct": 3}]}'
        )
        test = Test(gen=64)
        self.assertEqual(ingle.rate(test, run(output)), 100)
        details = ingle.details(test, run(output))
        self.assertEqual(details["overhead_pct"], 1)
        self.assertEqual(details["sample_sampler_pct"], 3)

    def test_llama_benchs_rate_is_the_median_of_its_runs(self):
        peer = contestants.LlamaCpp(NATIVE, MODEL, 2)
        output = '[{"avg_ts": 40, "samples_ts": [10, 100, 20]}]'
        self.assertEqual(peer.rate(Test(prompt=512), run(output)), 20)

    def test_batched_benchs_rate_is_the_aggregate_of_decoding(self):
        peer = contestants.LlamaCpp(NATIVE, MODEL, 2)
        output = "\n".join(
            f'{{"pl": 8, "speed_pp": 9, "speed_tg": {rate}}}'
            for rate in (200, 220, 210)
        )
        rate = peer.rate(Test(gen=64, batch=8), run("text\n" + output + "\n"))
        self.assertEqual(rate, 210)

    def test_prototypes_lines_are_told_apart(self):
        output = """
decode i8x2 nt=1 depth     0: 200.5 tok/s (min 1 max 2) weights 9 GB/s
decode i8x2 nt=2 depth     0: 434.1 tok/s (min 1 max 2) weights 9 GB/s
decode i8x2 nt=2 depth  8192: 104.2 tok/s (min 1 max 2) weights 9 GB/s
decode int8 nt=2 depth     0: 500.0 tok/s (min 1 max 2) weights 9 GB/s
prefill 512 int8x2 R2    nt=2: 1483 tok/s (min 1 max 2)
prefill 512 int8 R2      nt=2: 2310 tok/s (min 1 max 2)
prefill 7800 int8x2 R2    nt=2: 731 tok/s
batch M=8 depth128 int8x2 nt=2: 790 tok/s aggregate
batch M=8 depth128 int8 fly nt=2: 1050 tok/s aggregate
batch M=8 depth128 int8 R2mem nt=2: 1270 tok/s aggregate
"""
        expected = {
            ("near", Test(gen=64)): 434.1,
            ("near", Test(gen=64, depth=8192)): 104.2,
            ("fast", Test(gen=64)): 500,
            ("near", Test(prompt=512)): 1483,
            ("fast", Test(prompt=512)): 2310,
            ("near", Test(prompt=7800)): 731,
            ("near", Test(gen=64, batch=8)): 790,
            ("fast", Test(gen=64, batch=8)): 1270,
        }
        for (numerics, test), rate in expected.items():
            prototype = contestants.Prototype(pathlib.Path("p"), numerics, "w")
            self.assertEqual(prototype.rate(test, run(output)), rate)


class KlDivergence(unittest.TestCase):
    OUTPUT = """
kl_divergence: computing over 2 chunks, n_ctx=2048, batch_size=2048, n_seq=1
Mean ln(PPL(Q)/PPL(base))     :  -0.000121 ±   0.001532
====== KL divergence statistics ======
Mean    KLD:   0.002812 ±   0.000071
Maximum KLD:   0.064211
Mean    Δp: -0.011 ± 0.024 %
RMS Δp    :  1.101 ± 0.042 %
Same top p: 97.500 ± 0.321 %
"""

    def test_output_is_read(self):
        self.assertEqual(
            divergence.parse("Q4_1", self.OUTPUT),
            divergence.Divergence("Q4_1", 0.002812, 0.975, 2046),
        )

    def test_output_without_figures_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "no KL divergence for Q4_1"):
            divergence.parse("Q4_1", self.OUTPUT.split("Same")[0])

    def test_halves_are_turned_round_at_a_line(self):
        self.assertEqual(
            divergence.in_both_orders("one\ntwo\nthree\n"),
            "one\ntwo\nthree\nthree\none\ntwo\n",
        )

    def test_table_has_a_row_for_each_model(self):
        rows = [divergence.Divergence("Q4_1", 0.0028, 0.978, 2046)]
        lines = divergence.markdown(rows).split("\n")
        self.assertEqual(lines[2], "| Q4_1 | 2.8e-03 | 0.978 | 2046 |")


class Machine(unittest.TestCase):
    def test_busy_time_is_all_but_idle(self):
        ticks = machine.TICKS
        stat = f"cpu  {3 * ticks} {ticks} {ticks} {50 * ticks} {9 * ticks} 0 0 0 0 0"
        self.assertEqual(machine.busy_seconds(stat + "\ncpu0 1 2 3"), 5)

    def test_failed_program_is_one_line(self):
        with self.assertRaisesRegex(machine.Failed, "exit code 3: why$"):
            machine.run(["sh", "-c", "echo so; echo why >&2; exit 3"])

    def test_peak_memory_is_the_childs_own(self):
        size = 50_000_000
        script = f"x = bytearray({size}); x[::4096] = x[::4096]"
        taken = machine.run([sys.executable, "-c", script]).peak_bytes
        self.assertGreater(taken, size)
        self.assertLess(taken, 4 * size)


class Report(unittest.TestCase):
    def test_ratios_are_of_figures_of_one_round(self):
        rounds = [
            {"a": figure(200, 500), "b": figure(100, 1000)},
            {"a": figure(90, 500), "b": figure(30, 1000, disturbed=True)},
            {"a": figure(100, 500), "b": figure(100, 1000)},
        ]
        row = report.make_row("pp512", "a", "b", rounds)
        self.assertEqual(row.ratio, report.Spread(2, 1, 3))
        self.assertEqual(row.memory_ratio, 0.5)
        self.assertEqual(row.disturbed, 1)
        self.assertEqual(row.read_gb_s.median, 40)

    def test_table_has_a_cell_for_each_heading(self):
        rounds = [{"a": figure(2), "b": figure(1)}]
        table = report.markdown([report.make_row("pp1", "a", "b", rounds)])
        lines = table.split("\n")
        self.assertEqual(len(lines), 3)
        self.assertEqual({line.count("|") for line in lines}, {11})
        self.assertIn("| 2.00 |", lines[2])

    def test_rows_below_the_floor_are_named(self):
        rows = [
            report.make_row(name, "a", "b", [{"a": figure(rate), "b": figure(100)}])
            for name, rate in (("pp1", 149), ("tg1", 150))
        ]
        self.assertEqual(
            report.below(rows, 1.5), ["pp1: a has 1.49 of b, less than 1.5"]
        )


if __name__ == "__main__":
    unittest.main()

"""Who is measured: how each is started for a test, and what it prints."""

import dataclasses
import json
import re
import statistics


@dataclasses.dataclass(frozen=True)
class Test:
    """What is measured. `prompt` tokens are read, or each of `batch` rows
    decodes `gen` tokens after `depth`."""

    prompt: int = 0
    gen: int = 0
    depth: int = 0
    batch: int = 1

    @property
    def name(self):
        """As `ingle bench` calls it."""
        if self.prompt:
            return f"pp{self.prompt}"
        depth = f"@d{self.depth}" if self.depth else ""
        batch = f" b{self.batch}" if self.batch > 1 else ""
        return f"tg{self.gen}{depth}{batch}"

    @property
    def is_long(self):
        """Whether one run takes about a minute."""
        return self.prompt > 4096 or self.depth > 4096

    @property
    def repeats(self):
        """Runs within a process."""
        return 1 if self.is_long else 3


class Ingle:
    def __init__(self, program, model, numerics, threads):
        self.program = program
        self.model = model
        self.numerics = numerics
        self.threads = threads
        self.name = f"ingle {numerics}"

    def command(self, test):
        sizes = ["--prompt", test.prompt]
        if test.gen:
            sizes = [
                *("--gen", test.gen, "--depth", test.depth),
                *("--batch", test.batch),
            ]
        return [
            *(self.program, "bench", "--json", "--model", self.model),
            *("--numerics", self.numerics),
            *("--threads", self.threads, "--repeat", test.repeats, *sizes),
        ]

    def variables(self, test):
        return {}

    def can_run(self, test):
        return True

    def rate(self, test, run):
        return self.result(test, run)["tok_s"]

    def details(self, test, run):
        """What it says of itself beside the rate."""
        result = self.result(test, run)
        shares = ("overhead_pct", "sampler_pct")
        told = {name: result[name] for name in shares if name in result}
        sampled = self.find(run, test.name + "+sample")
        if sampled:
            told["sample_tok_s"] = sampled["tok_s"]
            told["sample_sampler_pct"] = sampled["sampler_pct"]
        return told

    def result(self, test, run):
        return self.find(run, test.name)

    @staticmethod
    def find(run, name):
        for result in json.loads(run.output)["results"]:
            if result["test"] == name:
                return result
        return None


class LlamaCpp:
    """A build of llama.cpp, a model and a choice of flash attention."""

    def __init__(self, folder, model, threads, flash=False):
        self.folder = folder
        self.model = model
        self.threads = threads
        self.flash = flash
        build = "" if folder.parent.name == "native" else " " + folder.parent.name
        kind = model.stem.upper().split("-")[-1]
        self.name = f"llama.cpp {kind}{build}"

    def with_flash(self, flash):
        return LlamaCpp(self.folder, self.model, self.threads, flash)

    def command(self, test):
        common = ["-m", self.model, "-t", self.threads]
        if test.batch == 1:
            return [
                *(self.folder / "llama-bench", *common, "-o", "json"),
                *("-p", test.prompt, "-n", test.gen, "-d", test.depth),
                *("-fa", int(self.flash), "-r", test.repeats),
            ]
        prompt = max(test.depth, 1)  # shared by all rows, so read once
        rows = ",".join([str(test.batch)] * test.repeats)
        return [
            *(self.folder / "llama-batched-bench", *common),
            *("--output-format", "jsonl", "-pps"),
            *("-npp", prompt, "-ntg", test.gen, "-npl", rows),
            *("-c", test.batch * (prompt + test.gen)),
            *("-fa", "on" if self.flash else "off"),
        ]

    def variables(self, test):
        return {}

    def can_run(self, test):
        return True

    def rate(self, test, run):
        if test.batch == 1:
            return statistics.median(json.loads(run.output)[0]["samples_ts"])
        lines = (run.output + run.errors).split("\n")
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return statistics.median(row["speed_tg"] for row in rows)

    def details(self, test, run):
        return {"flash_attention": self.flash}


class MlxLm:
    """Minutes for what others do in a second: short tests only."""

    name = "mlx-lm"

    def __init__(self, python, script, model):
        self.start = [python, script, model]

    def command(self, test):
        return [*self.start, "--prompt", test.prompt, "--gen", test.gen]

    def variables(self, test):
        return {}

    def can_run(self, test):
        return test.batch == 1 and test.depth == 0 and test.prompt <= 512

    def rate(self, test, run):
        return json.loads(run.output.strip().split("\n")[-1])["tok_s"]

    def details(self, test, run):
        return {}


class Prototype:
    """A program that measures by itself and prints lines like

    decode i8x2 nt=2 depth     0: 434.1 tok/s (min ...)
    prefill 512 int8x2 R2    nt=2: 1483 tok/s (min ...)
    batch M=8 depth128 int8x2 nt=2: 790 tok/s aggregate
    """

    # Numerics -> what it calls them when it decodes and reads, and the
    # variables that choose them.
    DECODE = {"near": ("i8x2", "2"), "fast": ("int8", "0"), "exact": ("f32", "1")}
    PREFILL = {"near": ("int8x2", "7"), "fast": ("int8", "6"), "exact": ("f32", "4")}

    def __init__(self, folder, numerics, weights):
        self.program = folder / "proto"
        self.numerics = numerics
        self.weights = weights
        self.name = f"prototype {numerics}"

    def command(self, test):
        kind = "pre" if test.prompt else "batch" if test.batch > 1 else "dec"
        return [self.program, kind]

    def variables(self, test):
        chosen = {"MODEL": str(self.weights), "NT2": "1"}
        if test.prompt:
            chosen["K"] = self.PREFILL[self.numerics][1]
            if test.prompt <= 512:
                chosen["NOLONG"] = "1"
        elif test.batch == 1:
            chosen["EX"] = self.DECODE[self.numerics][1]
            if test.depth == 0:
                chosen["D0"] = "1"
        return chosen

    def can_run(self, test):
        if test.prompt:
            return test.prompt in (512, 7800)
        if test.batch > 1:
            return test.batch == 8 and test.depth == 0
        return test.depth in (0, 2048, 8192)

    def rate(self, test, run):
        name = re.escape(self.DECODE[self.numerics][0])
        pattern = rf"decode {name} +nt=2 depth +{test.depth}: ([\d.]+) tok/s"
        if not (test.gen and test.batch == 1):
            name = re.escape(self.PREFILL[self.numerics][0])
            kind = f"prefill {test.prompt}" if test.prompt else r"batch M=8 \w+"
            pattern = rf"{kind} {name}(?: [^=]*)? +nt=2: ([\d.]+) tok/s"
        found = re.findall(pattern, run.output)
        if not found:
            raise ValueError(f"{self.name} printed no line for {test.name}")
        return max(float(value) for value in found)

    def details(self, test, run):
        return {}

"""Runs a program on an idle machine, and tells whether it stayed so."""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time

TICKS = os.sysconf("SC_CLK_TCK")
# Processors' worth of other work above which a figure does not count: half of
# one is gone to a neighbour that would not be noticed in the average.
OTHER_LOAD = 0.1


class Failed(Exception):
    """A program failed; one line."""


@dataclasses.dataclass
class Run:
    """What one process printed and took."""

    output: str
    errors: str
    seconds: float
    peak_bytes: int
    other_load: float  # processors that others used meanwhile
    mode: dict  # as bench/machine_mode printed it just before

    @property
    def is_disturbed(self):
        return self.other_load > OTHER_LOAD


def physical_cores():
    """As src/base/cores.h counts them."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            with open(path, encoding="ascii") as file:
                cores.add(file.read())
        except OSError:
            cores.add(cpu)
    return len(cores)


def busy_seconds(stat):
    """Processor time that was not idle, from the text of /proc/stat."""
    fields = [int(field) for field in stat.split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]  # idle, iowait; what is stolen is not ours
    return (sum(fields) - idle) / TICKS


def read_busy():
    with open("/proc/stat", encoding="ascii") as file:
        return busy_seconds(file.read())


def wait_until_idle(timeout):
    """Returns once others left the machine alone for a second."""
    told = False
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        before, start = read_busy(), time.monotonic()
        time.sleep(1)
        load = (read_busy() - before) / (time.monotonic() - start)
        if load <= OTHER_LOAD:
            return
        if not told:
            print(
                f"waiting for an idle machine ({load:.1f} processors busy)",
                file=sys.stderr,
            )
            told = True
    raise Failed(f"the machine was not idle for a second in {timeout} s")


def start_and_wait(command, variables):
    """(exit code, output, errors, resource usage) of a process of its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=os.environ | variables,
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return process.returncode, *texts, usage


def run(command, variables=None, machine_mode=None, idle_timeout=0):
    """Measures one process; waits for an idle machine first if it may."""
    if idle_timeout:
        wait_until_idle(idle_timeout)
    mode = {}
    if machine_mode:
        mode = json.loads(subprocess.check_output([machine_mode]))
    before, start = read_busy(), time.monotonic()
    code, output, errors, usage = start_and_wait(command, variables or {})
    seconds = time.monotonic() - start
    own = usage.ru_utime + usage.ru_stime
    if code != 0:
        last = (errors.strip() or output.strip() or "no output").split("\n")[-1]
        raise Failed(f"{' '.join(map(str, command))}: exit code {code}: {last}")
    return Run(
        output=output,
        errors=errors,
        seconds=seconds,
        peak_bytes=usage.ru_maxrss * 1024,
        other_load=max(0.0, (read_busy() - before - own) / seconds),
        mode=mode,
    )

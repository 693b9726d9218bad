"""Rounds of figures -> tables, and what is not as good as it has to be."""

import statistics

from report import Spread

LOAD_HEAD = (
    "clients", "decode tok/s", "peer", "ratio", "all tok/s", "peer",
    "TTFT p50 / p99 ms", "peer", "gap p50 / p99 ms", "peer", "client's load",
)  # fmt: skip


def spread(rounds, name):
    return Spread.of([figures[name] for figures in rounds])


def pair(rounds, names, digits):
    return " / ".join(
        f"{statistics.median(each[name] for each in rounds):.{digits}f}"
        for name in names
    )


def ratio(ours, theirs, name):
    """Of each round, ours ÷ theirs."""
    return Spread.of([a[name] / b[name] for a, b in zip(ours, theirs)])


def load_row(scenario, ours, theirs):
    ttft, gap = ("ttft_p50_ms", "ttft_p99_ms"), ("gap_p50_ms", "gap_p99_ms")
    busy = max(each["client_cpu_pct"] for each in (*ours, *theirs))
    return (
        str(scenario.clients),
        spread(ours, "decode_tok_s").text(0),
        spread(theirs, "decode_tok_s").text(0),
        ratio(ours, theirs, "decode_tok_s").text(2),
        spread(ours, "total_tok_s").text(0),
        spread(theirs, "total_tok_s").text(0),
        pair(ours, ttft, 0),
        pair(theirs, ttft, 0),
        pair(ours, gap, 1),
        pair(theirs, gap, 1),
        f"{busy:.0f}%",
    )


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def figure_rows(scenario, ours, theirs):
    """One for each figure of a scenario that has few."""
    for name in ours[0]:
        digits = 3 if name.endswith(("ratio", "least", "slowdown")) else 1
        yield (
            scenario.name,
            name,
            spread(ours, name).text(digits),
            spread(theirs, name).text(digits) if theirs else "",
        )


def slow_load(scenario, ours, theirs, floor):
    """What is told where the median ratio is below `floor`."""
    found = ratio(ours, theirs, "decode_tok_s")
    if found.median < floor:
        yield (
            f"{scenario.name}: decoding has {found.text(2)} of the peer's, "
            f"less than {floor}"
        )


def over_bar(scenario, ours):
    """What is told of ingle alone, where a median misses its bar."""
    middle = {
        name: statistics.median(each[name] for each in ours) for name in ours[0]
    }
    if "quiet_gap_ms" in middle:
        most = max(4 * middle["quiet_gap_ms"], 100)
        bars = (("gap_p99_ms", most), ("prefill_slowdown", 1.5))
    elif "cached_least" in middle:
        bars = (("ttft_ratio", 0.1),)  # one has to copy the preamble
    else:
        bars = (("ttft_ratio", 0.05),)
    for name, most in bars:
        if middle[name] > most:
            yield (
                f"{scenario.name}: {name} is {middle[name]:.3f}, "
                f"more than {most:g}"
            )
    if middle.get("cached_least", 1) < 0.9:
        yield (
            f"{scenario.name}: {middle['cached_least']:.2f} of a prompt was "
            "cached, less than 0.9"
        )

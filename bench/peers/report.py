"""Rounds of figures -> ratios, as a table and for programs."""

import dataclasses
import statistics


@dataclasses.dataclass
class Spread:
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values):
        return cls(statistics.median(values), min(values), max(values))

    def text(self, digits):
        if self.low == self.high:
            return f"{self.median:.{digits}f}"
        return (
            f"{self.median:.{digits}f} "
            f"({self.low:.{digits}f}–{self.high:.{digits}f})"
        )


@dataclasses.dataclass
class Row:
    """One test of ingle against one peer."""

    test: str
    ingle: str
    peer: str
    rate: Spread  # tokens per second
    peer_rate: Spread
    ratio: Spread  # of each round
    memory_ratio: float  # of the peaks
    meet_ns: Spread  # the machine's mode
    read_gb_s: Spread
    disturbed: int  # figures that others' work may have changed


def make_row(test, ingle, peer, rounds):
    """`rounds`: name -> figure, each a dict as bench/peers/run keeps it."""
    ours = [figures[ingle] for figures in rounds]
    theirs = [figures[peer] for figures in rounds]
    both = ours + theirs
    modes = [figure["mode"] for figure in both if figure["mode"]]
    return Row(
        test=test,
        ingle=ingle,
        peer=peer,
        rate=Spread.of([figure["tok_s"] for figure in ours]),
        peer_rate=Spread.of([figure["tok_s"] for figure in theirs]),
        ratio=Spread.of(
            [a["tok_s"] / b["tok_s"] for a, b in zip(ours, theirs)]
        ),
        memory_ratio=statistics.median(figure["peak_bytes"] for figure in ours)
        / statistics.median(figure["peak_bytes"] for figure in theirs),
        meet_ns=Spread.of([mode["meet_ns"] or 0 for mode in modes] or [0]),
        read_gb_s=Spread.of([mode["read_gb_s"][-1] for mode in modes] or [0]),
        disturbed=sum(figure["disturbed"] for figure in both),
    )


HEAD = (
    "test", "ingle", "peer", "ingle tok/s", "peer tok/s", "ratio",
    "memory ratio", "meet ns", "read GB/s", "disturbed",
)  # fmt: skip


def markdown(rows):
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for row in rows:
        cells = (
            row.test,
            row.ingle,
            row.peer,
            row.rate.text(1),
            row.peer_rate.text(1),
            row.ratio.text(2),
            f"{row.memory_ratio:.2f}",
            row.meet_ns.text(0),
            row.read_gb_s.text(0),
            str(row.disturbed),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def below(rows, floor):
    """A line for each row whose median ratio is below `floor`."""
    return [
        f"{row.test}: {row.ingle} has {row.ratio.text(2)} of {row.peer}, "
        f"less than {floor}"
        for row in rows
        if row.ratio.median < floor
    ]

"""How far llama.cpp's predictions from a model are from those of its truth."""

import dataclasses
import re

# Each has 2 * CONTEXT tokens and more: see in_both_orders().
CONTEXT = 2048


@dataclasses.dataclass
class Divergence:
    """Of one model file from the truth, over `positions` tokens."""

    model: str
    mean_kl: float
    top1: float  # how often both find the same token likeliest, 0 to 1
    positions: int


def in_both_orders(text):
    """`text` with the halves turned round after it.

    llama-perplexity cuts what it reads into contexts and judges the second half
    of each: so nearly all of the text is judged, in the two contexts that it
    fills.
    """
    middle = text.index("\n", len(text) // 2) + 1
    first, second = text[:middle], text[middle:]
    return first + second + second + first


def command(folder, model, logits, threads):
    return [
        *(folder / "llama-perplexity", "-m", model, "-t", threads),
        *("-c", CONTEXT, "-b", CONTEXT, "--kl-divergence-base", logits),
    ]


def truth_command(folder, model, logits, threads, text):
    """Keys and values in f32 as well: llama.cpp's default is f16."""
    return [
        *command(folder, model, logits, threads),
        *("-f", text, "-fa", "off", "-ctk", "f32", "-ctv", "f32"),
    ]


def compare_command(folder, model, logits, threads):
    return [*command(folder, model, logits, threads), "--kl-divergence"]


def parse(model, output):
    """What llama-perplexity --kl-divergence printed. Raises ValueError."""
    mean = re.search(r"^Mean +KLD: +(-?[\d.]+)", output, re.M)
    top1 = re.search(r"^Same top p: +([\d.]+)", output, re.M)
    chunks = re.search(r"computing over (\d+) chunks, n_ctx=(\d+)", output)
    if not (mean and top1 and chunks):
        raise ValueError(f"llama-perplexity printed no KL divergence for {model}")
    count, context = int(chunks[1]), int(chunks[2])
    return Divergence(
        model=model,
        mean_kl=float(mean[1]),
        top1=round(float(top1[1]) / 100, 5),
        positions=count * (context - 1 - context // 2),
    )


def markdown(rows):
    lines = ["| model | mean KL | same top token | positions |", "|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row.model} | {row.mean_kl:.1e} | {row.top1:.3f} | {row.positions} |"
        )
    return "\n".join(lines)

"""What clients do, and what they see of it.

A scenario is a coroutine of a server's port and texts that no server has seen;
it returns figures: name -> number. Those of time are in milliseconds, all is
greedy and goes on over the end of a sequence.
"""

import asyncio
import json
import math
import random
import time
import urllib.request

import stream
from machine import Failed

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"


def percentile(values, share):
    """The least value that so many percent of all don't exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share / 100 * len(ordered)) - 1)]


class Texts:
    """Words and tokens of English in an order that each seed has for itself, so
    that nothing is served from a cache that isn't meant to be."""

    def __init__(self, words, tokens, seed):
        self.words = words
        self.tokens = tokens
        self.random = random.Random(seed)

    def take_tokens(self, count):
        return self.random.choices(self.tokens, k=count)

    def take_words(self, count):
        """About `count` tokens of text."""
        share = len(self.words) / len(self.tokens)
        return " ".join(self.random.choices(self.words, k=int(count * share)))


def tokenise(port, text):
    """By ingle; the ids hold for all: it is one vocabulary."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/tokenize",
        json.dumps({"content": text}).encode(),
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["tokens"]


def completion(prompt, max_tokens):
    return {
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def chat(messages, max_tokens):
    body = completion("", max_tokens)
    del body["prompt"]
    return body | {"messages": messages}


def decode_window(answers, rows):
    """When `rows` of the answers (or all) were being written at once: from the
    token that completed them to the end of the first that left fewer. Where
    they never were: from the first token to the last."""
    together = min(rows, len(answers))
    firsts = sorted(answer.tokens[0] for answer in answers)
    lasts = sorted(answer.tokens[-1] for answer in answers)
    begin, end = firsts[together - 1], lasts[len(answers) - together]
    return (begin, end) if begin < end else (firsts[0], lasts[-1])


def rate_within(answers, begin, end):
    """Tokens per second. An event may hold two of them: where a server waits
    for the rest of a character."""
    tokens = 0.0
    for answer in answers:
        told = answer.usage.get("completion_tokens") or len(answer.tokens)
        within = sum(begin < when <= end for when in answer.tokens)
        tokens += within * told / len(answer.tokens)
    return tokens / (end - begin)


class Load:
    """`clients` at once, each with a prompt of its own."""

    def __init__(self, clients, prompt, gen, rows):
        self.name = f"{clients} client" + ("s" if clients > 1 else "")
        self.clients = clients
        self.prompt = prompt
        self.gen = gen
        self.rows = rows

    async def __call__(self, port, texts):
        bodies = [
            completion(texts.take_tokens(self.prompt), self.gen)
            for _ in range(self.clients)
        ]
        own, begin = time.process_time(), time.perf_counter()
        streams = await asyncio.gather(
            *(stream.start(port, COMPLETIONS, body) for body in bodies)
        )
        await asyncio.gather(*map(stream.finish, streams))
        took = time.perf_counter() - begin
        own = time.process_time() - own
        answers = [stream.read(each) for each in streams]
        ttfts = [1e3 * answer.ttft for answer in answers]
        gaps = [1e3 * gap for answer in answers for gap in answer.gaps]
        return {
            "decode_tok_s": rate_within(
                answers, *decode_window(answers, self.rows)
            ),
            "total_tok_s": self.clients * self.gen / took,
            "ttft_p50_ms": percentile(ttfts, 50),
            "ttft_p99_ms": percentile(ttfts, 99),
            "gap_p50_ms": percentile(gaps, 50),
            "gap_p99_ms": percentile(gaps, 99),
            "client_cpu_pct": 100 * own / took,
        }


class Neighbour:
    """One client reads on while another's long prompt is read."""

    name = "neighbour"
    QUIET = 256  # tokens

    def __init__(self, prompt, context):
        self.prompt = prompt
        self.context = context

    async def __call__(self, port, texts):
        alone = await stream.ask(
            port, COMPLETIONS, completion(texts.take_tokens(self.prompt), 1)
        )
        small = texts.take_tokens(64)
        reader = await stream.start(
            port, COMPLETIONS, completion(small, self.context - len(small))
        )
        await reader.has_events(self.QUIET)
        newcomer = await stream.ask(
            port, COMPLETIONS, completion(texts.take_tokens(self.prompt), 1)
        )
        await reader.has_events(reader.events + 2)  # what ends the last gap
        reader.close()
        tokens = stream.read(reader).tokens
        end = newcomer.sent + newcomer.ttft
        if tokens[-1] < end:
            raise Failed("the neighbour had to stop before the prompt was read")
        quiet, during = [], []
        for before, after in zip(tokens, tokens[1:]):
            if after < newcomer.sent:
                quiet.append(1e3 * (after - before))
            elif before < end:
                during.append(1e3 * (after - before))
        return {
            "quiet_gap_ms": percentile(quiet, 50),
            "gap_p50_ms": percentile(during, 50),
            "gap_p99_ms": percentile(during, 99),
            "gap_max_ms": max(during),
            "prefill_alone_ms": 1e3 * alone.ttft,
            "prefill_ms": 1e3 * newcomer.ttft,
            "prefill_slowdown": newcomer.ttft / alone.ttft,
        }


class SecondTurn:
    """A chat of one long turn goes on with a short one."""

    name = "second turn"

    def __init__(self, prompt, turn):
        self.prompt = prompt
        self.turn = turn

    async def __call__(self, port, texts):
        messages = [
            {"role": "user", "content": texts.take_words(self.prompt)}
        ]
        first = await stream.ask(port, CHAT, chat(messages, 32))
        messages += [
            {"role": "assistant", "content": first.text},
            {"role": "user", "content": texts.take_words(self.turn)},
        ]
        second = await stream.ask(port, CHAT, chat(messages, 32))
        return {
            "prompt_tokens": first.usage["prompt_tokens"],
            "first_ttft_ms": 1e3 * first.ttft,
            "second_ttft_ms": 1e3 * second.ttft,
            "ttft_ratio": second.ttft / first.ttft,
            "not_cached": second.usage["prompt_tokens"] - second.cached,
        }


class Agents:
    """Two chats behind the same long preamble take turns."""

    name = "two agents"
    TURNS = 3

    def __init__(self, preamble, turn):
        self.preamble = preamble
        self.turn = turn

    async def __call__(self, port, texts):
        preamble = texts.take_words(self.preamble)
        chats = [[{"role": "system", "content": preamble}] for _ in range(2)]
        answers = []
        for _ in range(self.TURNS):
            for messages in chats:
                text = texts.take_words(self.turn)
                messages.append({"role": "user", "content": text})
                answer = await stream.ask(port, CHAT, chat(messages, 32))
                messages.append({"role": "assistant", "content": answer.text})
                answers.append(answer)
        cold, *warm = answers
        return {
            "prompt_tokens": cold.usage["prompt_tokens"],
            "cold_ttft_ms": 1e3 * cold.ttft,
            "warm_ttft_max_ms": 1e3 * max(answer.ttft for answer in warm),
            "ttft_ratio": max(answer.ttft for answer in warm) / cold.ttft,
            "cached_least": min(
                answer.cached / answer.usage["prompt_tokens"] for answer in warm
            ),
        }

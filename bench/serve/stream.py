"""A client that takes as little of the machine as it can: the servers that it
measures have the same processors.

While an answer comes in, its bytes and the times are noted and nothing more;
they are read once all answers of a scenario are there.
"""

import asyncio
import dataclasses
import json
import time

from machine import Failed


@dataclasses.dataclass
class Answer:
    """What a streamed request got. Times are those of time.perf_counter()."""

    sent: float
    tokens: list  # when each event with text arrived
    ended: float
    usage: dict
    text: str

    @property
    def ttft(self):
        return self.tokens[0] - self.sent

    @property
    def gaps(self):
        return [b - a for a, b in zip(self.tokens, self.tokens[1:])]

    @property
    def cached(self):
        return (self.usage.get("prompt_tokens_details") or {}).get(
            "cached_tokens", 0
        )


class Stream(asyncio.Protocol):
    """One POST on a connection of its own."""

    def __init__(self):
        self.pieces = []  # (when, bytes)
        self.events = 0  # roughly: line ends of server-sent events
        self.sent = 0.0
        self.ended = 0.0
        self.is_closed = asyncio.get_running_loop().create_future()
        self.transport = None
        self.awaited = None  # (events, future)

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        now = time.perf_counter()
        self.pieces.append((now, data))
        self.events += data.count(b"\n\n")
        if self.awaited and self.events >= self.awaited[0]:
            self.awaited[1].set_result(None)
            self.awaited = None

    def connection_lost(self, error):
        self.ended = time.perf_counter()
        if self.awaited:
            self.awaited[1].set_result(None)
            self.awaited = None
        if not self.is_closed.done():
            self.is_closed.set_result(error)

    async def has_events(self, count):
        """Returns once so many events are there, or no more will come."""
        if self.events < count and not self.is_closed.done():
            future = asyncio.get_running_loop().create_future()
            self.awaited = (count, future)
            await future

    def close(self):
        self.transport.abort()


async def start(port, path, body):
    """A Stream whose request is out."""
    loop = asyncio.get_running_loop()
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    _, stream = await loop.create_connection(Stream, "127.0.0.1", port)
    stream.sent = time.perf_counter()
    stream.transport.write(head.encode() + data)
    return stream


async def finish(stream):
    """The Stream, at the end of its answer."""
    await stream.is_closed
    return stream


def body_of(pieces):
    """The status and the body, as pieces of (when, bytes)."""
    data = b"".join(piece for _, piece in pieces)
    end = data.find(b"\r\n\r\n") + 4
    head = data[:end].decode("latin-1")
    status = int(head.split(" ", 2)[1]) if end > 3 else 0
    chunked = "transfer-encoding: chunked" in head.lower()
    # Where each piece ends in the whole, to find a byte's time.
    ends, at = [], 0
    for when, piece in pieces:
        at += len(piece)
        ends.append((at, when))
    return status, data, end, chunked, ends


def unchunk(data, at):
    """Yields (offset of its last byte, bytes) for each chunk."""
    while True:
        line = data.find(b"\r\n", at)
        if line < 0:
            return
        size = int(data[at:line], 16)
        if size == 0 or line + 2 + size > len(data):
            return  # the end, or where we closed it
        yield line + 2 + size, data[line + 2 : line + 2 + size]
        at = line + 2 + size + 2


def read_events(pieces):
    """The status, what was sent instead of events, and (when, JSON) of each."""
    status, data, at, chunked, ends = body_of(pieces)
    chunks = unchunk(data, at) if chunked else [(len(data), data[at:])]
    events, rest, place = [], b"", 0
    for offset, chunk in chunks:
        while ends[place][0] < offset:
            place += 1
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                events.append((ends[place][1], json.loads(line[6:])))
    return status, rest, events


def text_of(choice):
    delta = choice.get("delta") or {}
    return choice.get("text") or delta.get("content") or ""


def read(stream):
    """The Answer that a finished or closed Stream got."""
    status, rest, events = read_events(stream.pieces)
    if status != 200:
        told = rest.decode(errors="replace")[:200]
        raise Failed(f"a request got status {status}: {told}")
    answer = Answer(stream.sent, [], stream.ended, {}, "")
    for when, event in events:
        if "error" in event:
            raise Failed(f"an answer failed: {event['error']}")
        answer.usage = event.get("usage") or answer.usage
        for choice in event["choices"]:
            text = text_of(choice)
            if text:
                answer.tokens.append(when)
                answer.text += text
    if not answer.tokens:
        raise Failed("an answer has no text")
    return answer


async def ask(port, path, body):
    return read(await finish(await start(port, path, body)))

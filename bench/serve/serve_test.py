#!/usr/bin/env python3
"""What bench/serve/run makes of what servers send, without running them."""

import asyncio
import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(os.path.abspath(__file__)).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]
import scenarios  # noqa: E402
import servers  # noqa: E402
import stream  # noqa: E402
import verdict  # noqa: E402
from machine import Failed  # noqa: E402

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def event(text, **fields):
    body = {"choices": [{"text": text}]} | fields
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def answer(tokens, completion_tokens=None, sent=0.0):
    usage = {"completion_tokens": completion_tokens or len(tokens)}
    return stream.Answer(sent, tokens, tokens[-1], usage, "")


class Reading(unittest.TestCase):
    def read(self, pieces):
        # What a Stream keeps, without a connection.
        kept = type("Kept", (), {"pieces": pieces, "sent": 0.5, "ended": 9.0})
        return stream.read(kept)

    def test_each_token_has_the_time_of_the_bytes_that_ended_it(self):
        head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        second = chunk(event("b"))
        last = chunk(event("", usage={"completion_tokens": 3}))
        got = self.read(
            [
                (1.0, head + chunk(event("a")) + second[:7]),
                (2.0, second[7:] + chunk(event("c") + b": ping\n\n")),
                (3.0, last + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"),
            ]
        )
        self.assertEqual(got.tokens, [1.0, 2.0, 2.0])
        self.assertEqual((got.text, got.ttft), ("abc", 0.5))
        self.assertEqual(got.usage, {"completion_tokens": 3})

    def test_stream_that_ends_with_its_connection_is_read(self):
        got = self.read([(1.0, HEAD + b"\r\n" + event("a")), (2.0, event("b"))])
        self.assertEqual(got.text, "ab")

    def test_closed_stream_counts_up_to_its_last_whole_chunk(self):
        head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        cut = chunk(event("b"))[:-5]
        self.assertEqual(
            self.read([(1.0, head + chunk(event("a"))), (2.0, cut)]).text, "a"
        )

    def test_role_and_reasons_are_no_tokens(self):
        role = {"choices": [{"delta": {"role": "assistant", "content": None}}]}
        text = {"choices": [{"delta": {"content": "a"}}]}
        end = {"choices": [{"delta": {}, "finish_reason": "length"}]}
        body = b"".join(
            b"data: " + json.dumps(each).encode() + b"\n\n"
            for each in (role, text, end)
        )
        got = self.read([(1.0, HEAD + b"\r\n"), (2.0, body)])
        self.assertEqual(got.tokens, [2.0])

    def test_refusal_and_failure_are_told(self):
        refusal = b'HTTP/1.1 503 Busy\r\n\r\n{"error": "full"}'
        with self.assertRaisesRegex(Failed, "503.*full"):
            self.read([(1.0, refusal)])
        failure = b'data: {"error": {"message": "broke"}}\n\n'
        with self.assertRaisesRegex(Failed, "broke"):
            self.read([(1.0, HEAD + b"\r\n" + failure)])
        with self.assertRaisesRegex(Failed, "no text"):
            self.read([(1.0, HEAD + b"\r\n")])


class Asking(unittest.TestCase):
    """Over a real connection."""

    def ask(self, serve, then):
        async def both():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            async with server:
                started = await stream.start(port, "/v1/x", {"a": "é"})
                return await then(started)

        return asyncio.run(asyncio.wait_for(both(), 10))

    def test_whole_request_goes_out_and_the_answer_comes_back(self):
        requests = []

        async def serve(reader, writer):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            requests.append((head, await reader.readexactly(length)))
            writer.write(HEAD + b"\r\n" + event("x"))
            writer.close()

        got = stream.read(self.ask(serve, stream.finish))
        self.assertEqual(got.text, "x")
        self.assertTrue(requests[0][0].startswith(b"POST /v1/x HTTP/1.1\r\n"))
        self.assertEqual(json.loads(requests[0][1]), {"a": "é"})

    def test_waiting_for_events_ends_with_the_connection(self):
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + b"\r\n" + event("x"))
            writer.close()

        async def then(started):
            await started.has_events(5)
            return started

        self.assertEqual(stream.read(self.ask(serve, then)).text, "x")


class Figures(unittest.TestCase):
    def test_percentiles_are_values_that_were_measured(self):
        values = list(range(1, 101))
        self.assertEqual(scenarios.percentile(values, 50), 50)
        self.assertEqual(scenarios.percentile(values, 99), 99)
        self.assertEqual(scenarios.percentile([7], 99), 7)

    def test_decode_counts_only_while_all_are_written(self):
        a = answer([1.0, 2.0, 3.0, 4.0])
        b = answer([2.0, 3.0, 4.0, 5.0, 6.0])
        window = scenarios.decode_window([a, b], rows=8)
        self.assertEqual(window, (2.0, 4.0))
        self.assertEqual(scenarios.rate_within([a, b], *window), 2.0)

    def test_more_clients_than_rows_count_while_rows_are_full(self):
        waves = [answer([1.0, 2.0]), answer([1.5, 3.0]), answer([2.5, 4.0])]
        self.assertEqual(scenarios.decode_window(waves, rows=2), (1.5, 3.0))

    def test_one_after_the_other_counts_from_first_to_last(self):
        turns = [answer([1.0, 2.0]), answer([3.0, 4.0])]
        self.assertEqual(scenarios.decode_window(turns, rows=8), (1.0, 4.0))

    def test_event_of_several_tokens_counts_as_so_many(self):
        twice = answer([1.0, 2.0, 3.0], completion_tokens=6)
        self.assertEqual(scenarios.rate_within([twice], 1.0, 3.0), 2.0)

    def test_texts_of_a_seed_are_the_same_and_of_another_are_not(self):
        words, tokens = list("abcdefgh"), list(range(16))

        def take(seed):
            texts = scenarios.Texts(words, tokens, seed)
            return texts.take_tokens(20), texts.take_words(40)

        self.assertEqual(take(1), take(1))
        self.assertNotEqual(take(1), take(2))
        self.assertEqual(len(take(1)[1].split()), 20)


class Verdicts(unittest.TestCase):
    LOAD = scenarios.Load(8, 1, 1, 8)
    NEIGHBOUR = scenarios.Neighbour(1, 2)
    SECOND = scenarios.SecondTurn(1, 1)

    def test_floor_is_held_against_the_median_ratio(self):
        ours = [{"decode_tok_s": rate} for rate in (200, 260, 270)]
        theirs = [{"decode_tok_s": 100}] * 3
        self.assertEqual(
            list(verdict.slow_load(self.LOAD, ours, theirs, 2.5)), []
        )
        told = list(verdict.slow_load(self.LOAD, ours, theirs, 2.7))
        self.assertIn("8 clients: decoding has 2.60", told[0])

    def misses(self, scenario, **figures):
        return list(verdict.over_bar(scenario, [figures]))

    def test_neighbours_gap_may_be_four_quiet_ones_or_100_ms(self):
        def gap(quiet, p99, slowdown=1.0):
            return self.misses(
                self.NEIGHBOUR,
                quiet_gap_ms=quiet,
                gap_p99_ms=p99,
                prefill_slowdown=slowdown,
            )

        self.assertEqual(gap(2, 99), [])
        self.assertIn("gap_p99_ms", gap(2, 101)[0])
        self.assertEqual(gap(30, 119), [])
        self.assertIn("gap_p99_ms", gap(30, 121)[0])
        self.assertIn("prefill_slowdown", gap(2, 99, 1.6)[0])

    def test_warm_turn_may_take_a_twentieth(self):
        self.assertEqual(self.misses(self.SECOND, ttft_ratio=0.05), [])
        self.assertIn("0.06", self.misses(self.SECOND, ttft_ratio=0.06)[0])

    def test_agent_that_is_read_again_is_told(self):
        agents = scenarios.Agents(1, 1)
        told = self.misses(agents, ttft_ratio=0.01, cached_least=0.5)
        self.assertIn("0.50 of a prompt was cached", told[0])
        self.assertEqual(
            self.misses(agents, ttft_ratio=0.1, cached_least=0.9), []
        )
        told = self.misses(agents, ttft_ratio=0.11, cached_least=0.9)
        self.assertIn("ttft_ratio", told[0])


class Commands(unittest.TestCase):
    def test_every_slot_of_the_peer_has_the_whole_context(self):
        peer = servers.LlamaServer(
            pathlib.Path("bin"), pathlib.Path("m/q4_1.gguf"), 2, 8, 8192
        )
        words = [str(word) for word in peer.with_flash(True).command(1)]
        flags = dict(zip(words, words[1:]))
        self.assertEqual(flags["-c"], "65536")
        self.assertEqual((flags["-np"], flags["-t"]), ("8", "2"))
        self.assertEqual(flags["-fa"], "on")
        self.assertEqual(peer.name, "llama-server Q4_1")


if __name__ == "__main__":
    unittest.main()

"""Writes tests/data/grammar_masks.json: which tokens of SmolLM2's vocabulary
llguidance's own package allows at each step of answers to a few grammars.

usage: python grammar_golden.py TOKENIZER_JSON
"""

import importlib.metadata
import json
import pathlib
import random
import sys

from llguidance import LLMatcher, LLTokenizer

OUT = pathlib.Path(__file__).parents[2] / "tests/data/grammar_masks.json"
EOS = 2
WALKS, STEPS = 4, 40
# As src/text/rust has it.
SPACE = r"\x20|\r?\n[\x20\t]{0,64}"
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "born": {"type": "string", "format": "date"},
        "kind": {"enum": ["friend", "foe", None, 7]},
        "friends": {"type": "array", "items": {"$ref": "#/$defs/Friend"}},
        "score": {"anyOf": [{"type": "number"}, {"type": "null"}]},
    },
    "required": ["name", "age", "kind"],
    "additionalProperties": False,
    "$defs": {
        "Friend": {
            "type": "object",
            "properties": {"id": {"type": "string", "pattern": "^[a-f]{4}$"}},
            "required": ["id"],
        }
    },
}
GRAMMARS = [
    ("json_schema", json.dumps(PERSON)),
    ("json_schema", json.dumps({"type": "object"})),
    ("json_schema", json.dumps({"const": "Köln \u2603 <|im_end|>"})),
    ("regex", r"[A-Z][a-z]+( [A-Z][a-z]+)*, \d{4}"),
    ("regex", r"(?s:.*)\.\n"),
    ("lark", 'start: "(" start ")" | NUMBER\nNUMBER: /[0-9]+(\\.[0-9]+)?/'),
]


def grammar(kind, text):
    if kind == "json_schema":
        schema = json.loads(text) | {"x-guidance": {"whitespace_pattern": SPACE}}
        return LLMatcher.grammar_from_json_schema(json.dumps(schema))
    if kind == "regex":
        return LLMatcher.grammar_from_regex(text)
    return LLMatcher.grammar_from_lark(text)


def digest(ids):
    """FNV-1a of the ids, as 64 bits in hexadecimal."""
    value = 0xCBF29CE484222325
    for token in ids:
        for shift in (0, 8, 16, 24):
            value ^= token >> shift & 0xFF
            value = value * 0x100000001B3 % 2**64
    return f"{value:016x}"


def allowed(matcher):
    bits = matcher.compute_bitmask()
    return [
        byte * 8 + bit
        for byte, value in enumerate(bits)
        if value
        for bit in range(8)
        if value >> bit & 1
    ]


def walk(tokenizer, kind, text, draws):
    """A random answer, with what was allowed at each of its steps."""
    matcher = LLMatcher(tokenizer, grammar(kind, text))
    steps = []
    while len(steps) < STEPS and not matcher.is_stopped():
        ids = allowed(matcher)
        assert ids, matcher.get_error()
        token = draws.choice(ids)
        steps.append({"count": len(ids), "ids": digest(ids), "token": token})
        if token == EOS:
            break
        matcher.consume_token(token)
    return steps


def main():
    path = pathlib.Path(sys.argv[1])
    tokenizer = LLTokenizer(path.read_text(), eos_token=EOS)
    draws = random.Random(5)
    cases = [
        {"kind": kind, "text": text, "steps": walk(tokenizer, kind, text, draws)}
        for kind, text in GRAMMARS
        for _ in range(WALKS)
    ]
    golden = {
        "made_by": "tools/oracle/grammar_golden.py, llguidance "
        + importlib.metadata.version("llguidance"),
        "cases": cases,
    }
    OUT.write_text(json.dumps(golden, indent=1) + "\n")


main()

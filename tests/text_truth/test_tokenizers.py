"""Tokenizers against Hugging Face's library: the default model's, and those
our importer makes of GGUF files."""

import json
import random
import re
import unicodedata

import pytest
import tokenizers

import corpus

REPLACEMENT = "\ufffd"

# Of the vocabularies in the source package.
IMPORTED = (
    "aquila",
    "baichuan",
    "command-r",
    "gpt-2",
    "gpt-neox",
    "llama-bpe",
    "llama-spm",
    "mpt",
    "phi-3",
    "qwen2",
    "refact",
    "starcoder",
)
# The package has no ids for these.
WITHOUT_IDS = ("aquila", "baichuan", "gpt-neox")
REFUSED = {
    "bert-bge": "tokenizer 'bert' is not supported",
    "deepseek-coder": "pre-tokenizer 'deepseek-coder' is not supported",
    "deepseek-llm": "pre-tokenizer 'deepseek-llm' is not supported",
    "falcon": "pre-tokenizer 'falcon' is not supported",
    "gemma-4": "tokenizer 'gemma4' is not supported",
    "nomic-bert-moe": "tokenizer 't5' is not supported",
    "qwen35": "pre-tokenizer 'qwen35' is not supported",
}
DEFAULT = "the default model"


def random_ids(vocabulary, count):
    rng = random.Random(6)
    known = sorted(vocabulary.values())
    return {
        number: rng.choices(known, k=rng.randint(1, 30))
        for number in range(count)
    }


def gguf(sources, name):
    return sources / f"ggml-vocab-{name}.gguf"


# GPT-2's spelling of bytes.
VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
HIDDEN = sorted(set(range(256)) - set(VISIBLE))
SPELLING = {byte: chr(byte) for byte in VISIBLE} | {
    byte: chr(0x100 + index) for index, byte in enumerate(HIDDEN)
}


class Subject:
    """A tokenizer in both libraries, and what ours answered."""

    def __init__(self, path, ask):
        self.path = str(path)
        self.ask_all = ask
        self.theirs = tokenizers.Tokenizer.from_file(self.path)
        self.theirs.no_padding()
        self.theirs.no_truncation()
        self.file = json.loads(path.read_text(encoding="utf-8"))
        self.vocabulary = self.theirs.get_vocab()
        self.random_ids = random_ids(self.vocabulary, 300)
        self.random_pieces = self.random_ids
        if "ByteFallback" in self.steps("decoder"):
            # What is shown of a run of bytes that is no text stays shown, while
            # decode() takes it back: see stream_decoder.h.
            self.random_pieces = {
                number: [id for id in ids if not self.is_byte(id)]
                for number, ids in self.random_ids.items()
            }
        plain, special = self.ask(
            ("encode", "text", corpus.TEXTS, {"special": False}),
            ("encode", "text", corpus.TEXTS, {"special": True}),
        )
        self.ids = {name: answer.get("ids") for name, answer in plain.items()}
        self.special_ids = {
            name: answer.get("ids") for name, answer in special.items()
        }
        limit = max(self.vocabulary.values()) + 1
        self.unknown_ids = {id: [id] for id in (limit, -1, 2**31 - 1)}
        decoded = (
            (inputs, {"skip_special": skip})
            for inputs in (self.ids, self.random_ids)
            for skip in (False, True)
        )
        (
            *self.decoded,
            self.streamed,
            self.streamed_random,
            self.bytes,
            self.refused_text,
            self.refused_stream,
            self.refused_bytes,
        ) = self.ask(
            *(("decode", "ids", *more) for more in decoded),
            ("stream", "ids", self.ids, {}),
            ("stream", "ids", self.random_pieces, {}),
            ("token_bytes", "ids", self.ids, {}),
            ("decode", "ids", self.unknown_ids, {"skip_special": True}),
            ("stream", "ids", self.unknown_ids, {}),
            ("token_bytes", "ids", self.unknown_ids, {}),
        )

    def ask(self, *questions):
        """Of one process, as loading takes long. For each of (op, field, name
        -> input, more fields): name -> answer."""
        requests = [
            {"op": op, "tokenizer": self.path, field: value, **more}
            for op, field, inputs, more in questions
            for value in inputs.values()
        ]
        answers = iter(self.ask_all(requests))
        return [
            {name: next(answers) for name in inputs}
            for _, _, inputs, _ in questions
        ]

    def is_byte(self, id):
        return re.fullmatch("<0x..>", self.theirs.id_to_token(id))

    def steps(self, part):
        """The types of the steps in, say, the decoder."""
        step = self.file[part] or {}
        inner = step.get("normalizers") or step.get("decoders") or [step]
        return [step.get("type") for step in inner]


@pytest.fixture(scope="session", params=(DEFAULT,) + IMPORTED)
def subject(request, ask):
    if request.param == DEFAULT:
        model = request.getfixturevalue("default_model")
        return Subject(model / "tokenizer.json", ask)
    answer, path = request.getfixturevalue("rebuilt")[request.param]
    assert "error" not in answer, answer
    return Subject(path, ask)


def test_the_importer_takes_and_refuses_what_is_listed(rebuilt):
    taken = {name for name, (answer, _) in rebuilt.items() if not answer}
    assert taken == set(IMPORTED)
    refused = {
        name: answer["error"] for name, (answer, _) in rebuilt.items() if answer
    }
    assert set(refused) == set(REFUSED)
    for name, words in REFUSED.items():
        assert words in refused[name]


@pytest.mark.parametrize(
    "name", [name for name in IMPORTED if name not in WITHOUT_IDS]
)
def test_imported_ids_are_those_of_the_original_tokenizer(
    name, sources, rebuilt, ask
):
    inputs = gguf(sources, name).with_suffix(".gguf.inp")
    text = inputs.read_bytes().decode()
    texts = text.split("\n__ggml_vocab_test__\n")
    lines = inputs.with_suffix(".out").read_text().split("\n")
    expected = [[int(word) for word in line.split()] for line in lines]
    assert len(texts) == len(expected) > 40
    path = str(rebuilt[name][1])
    common = {"op": "encode", "tokenizer": path, "special": False}
    answers = ask([{**common, "text": text} for text in texts])
    for text, answer, ids in zip(texts, answers, expected):
        assert answer.get("ids") == ids, repr(text)


def test_ids(subject):
    for special, ours in ((False, subject.ids), (True, subject.special_ids)):
        for name, text in corpus.TEXTS.items():
            theirs = subject.theirs.encode(text, add_special_tokens=special)
            assert ours[name] == theirs.ids, (name, text)


@pytest.mark.parametrize("skip", (False, True))
def test_decoded_text(subject, skip):
    for name, ids in subject.ids.items():
        theirs = subject.theirs.decode(ids, skip_special_tokens=skip)
        assert subject.decoded[skip][name].get("text") == theirs, name


@pytest.mark.parametrize("skip", (False, True))
def test_decoded_text_of_random_ids(subject, skip):
    for number, ids in subject.random_ids.items():
        theirs = subject.theirs.decode(ids, skip_special_tokens=skip)
        assert subject.decoded[2 + skip][number].get("text") == theirs, ids


def is_all_but_tail(streamed, whole):
    """Up to three U+FFFD may be the beginning of a character that comes."""
    rest = whole.removeprefix(streamed)
    tails = [REPLACEMENT * count for count in range(4)]
    return whole.startswith(streamed) and rest in tails


def test_streamed_text_is_the_decoded_text(subject):
    for name, ids in subject.ids.items():
        streamed = "".join(subject.streamed[name]["pieces"])
        whole = subject.theirs.decode(ids, skip_special_tokens=True)
        assert is_all_but_tail(streamed, whole), name
        if REPLACEMENT not in whole:
            assert streamed == whole, name


def test_streamed_text_of_random_ids(subject):
    for number, ids in subject.random_pieces.items():
        streamed = "".join(subject.streamed_random[number]["pieces"])
        whole = subject.theirs.decode(ids, skip_special_tokens=True)
        assert is_all_but_tail(streamed, whole), ids


def expected_bytes(subject, text, ids):
    """Of the tokens of a text. None: the tokenizer changes it in more ways than
    are known here."""
    steps = subject.steps("normalizer")
    if "NFC" in steps:
        text = unicodedata.normalize("NFC", text)
    if "Prepend" in steps and text:
        if {token["id"] for token in subject.file["added_tokens"]} & set(ids):
            return None  # each part between such tokens begins with a space
        text = " " + text
    if "ByteFallback" in subject.steps("decoder"):
        return None if "\u2581" in text else text.encode()
    # A byte that the vocabulary lacks has no token.
    return bytes(b for b in text.encode() if SPELLING[b] in subject.vocabulary)


def test_bytes_of_the_tokens_are_the_text(subject):
    checked = 0
    for name, text in corpus.TEXTS.items():
        expected = expected_bytes(subject, text, subject.ids[name])
        if expected is not None:
            checked += 1
            ours = bytes.fromhex("".join(subject.bytes[name]["bytes"]))
            assert ours == expected, name
    assert checked > len(corpus.TEXTS) * 3 / 4


def test_ids_beyond_the_tokenizer_are_refused(subject):
    for id in subject.unknown_ids:
        assert str(id) in subject.refused_text[id]["error"]
        assert str(id) in subject.refused_stream[id]["error"]
        assert str(id) in subject.refused_bytes[id]["error"]

"""What a chat request becomes, against what transformers makes of the same
conversation: our API layer takes it as clients send it, transformers as
templates want it."""

import json

import pytest
import tokenizers

import conversations
import renderer

DEFAULT = "the default model"
TEMPLATES = (
    DEFAULT,
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-V3.1",
    "google-gemma-2-2b-it",
    "google-gemma-3-it",
    "google-gemma-4-31B-it",
    "meta-llama-Llama-3.1-8B-Instruct",
    "meta-llama-Llama-3.3-70B-Instruct",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "openai-gpt-oss-120b",
)
# Where transformers fails without tools because None has no items, we render.
WANTS_TOOLS = {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use"}
# Our API refuses these.
REFUSED = {"unknown role", "image part"}


def without_nulls(message):
    return {key: value for key, value in message.items() if value is not None}


def for_templates(message):
    """As transformers' documentation wants it."""
    message = without_nulls(message)
    if message["role"] == "developer":
        message["role"] = "system"
    if isinstance(message.get("content"), list):
        texts = [part["text"] for part in message["content"]]
        message["content"] = "".join(texts)
    if "tool_calls" in message:
        message["tool_calls"] = [
            conversations.call(
                call["function"]["name"],
                as_object(call["function"]["arguments"]),
                call["id"],
            )
            for call in message["tool_calls"]
        ]
    return message


def as_object(arguments):
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def as_sent(message, number):
    """As official SDKs send it: arguments are text, what is absent is null, a
    developer speaks where templates have a system, text comes in parts."""
    sent = {"content": None, "name": None, **for_templates(message)}
    if sent["role"] == "system":
        sent["role"] = "developer"
    if sent["role"] == "assistant":
        sent = {"refusal": None, "tool_calls": None, "audio": None, **sent}
    if sent["content"] and sent["role"] == "user":
        text = sent["content"]
        sent["content"] = [
            {"type": "text", "text": part} for part in (text[:3], text[3:])
        ]
    for call in sent.get("tool_calls") or []:
        function = call["function"]
        text = json.dumps(function["arguments"], ensure_ascii=number % 2 == 0)
        call["function"] = {**function, "arguments": text}
    if "reasoning_content" in sent:
        names = ("reasoning", "thinking", "reasoning_content")
        sent[names[number % 3]] = sent.pop("reasoning_content")
    return sent


def cases():
    """name -> (messages, tools, variables)"""
    for name, messages in conversations.CONVERSATIONS.items():
        if name not in REFUSED:
            yield name, (messages, None, {})
            yield f"{name}, not thinking", (
                messages,
                None,
                {"enable_thinking": False},
            )
    for name, messages in conversations.TOOL_CONVERSATIONS.items():
        yield name, (messages, conversations.TOOLS, {})
        yield f"{name}, no tools", (messages, None, {})


CASES = dict(cases())


def bodies(messages, tools, variables):
    """Of one conversation: as templates want it, and as clients send it."""
    more = {} if tools is None else {"tools": tools}
    if variables:
        more["chat_template_kwargs"] = variables
    sent = [as_sent(message, index) for index, message in enumerate(messages)]
    for spelling in ([for_templates(message) for message in messages], sent):
        yield json.dumps({"messages": spelling, **more})


def chat(source, body, tokens, **more):
    return {
        "op": "chat",
        "template": source,
        "body": body,
        "now": renderer.NOW_SECONDS,
        "tokens": renderer.there(tokens),
        **more,
    }


def source_of(name, pytest_request):
    if name == DEFAULT:
        return pytest_request.getfixturevalue("default_template")
    folder = pytest_request.getfixturevalue("sources") / "templates"
    return (folder / f"{name}.jinja").read_text(encoding="utf-8")


def render(template, messages, tools, variables):
    messages = [for_templates(message) for message in messages]
    return template.render(
        {
            "messages": messages,
            "tools": tools,
            "add_generation_prompt": True,
            **variables,
        }
    )


def with_content(messages):
    return [
        {**message, "content": message.get("content") or ""}
        for message in messages
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_goldens(name, request, ask):
    source = source_of(name, request)
    template = renderer.Template(source)
    expected = []
    requests = []
    for label, case in CASES.items():
        text, error, _ = render(template, *case)
        if error and "no attribute 'content'" in str(error):
            # We go on as if nothing was said beside the calls.
            text, error, _ = render(template, with_content(case[0]), *case[1:])
        if error and name in WANTS_TOOLS and "NoneType" in str(error):
            continue
        for body in bodies(*case):
            expected.append((label, text, error))
            requests.append(chat(source, body, renderer.TOKENS))
    rendered = 0
    for (label, text, error), answer in zip(expected, ask(requests)):
        if error is None:
            rendered += 1
            assert answer.get("prompt") == text, (label, answer)
        else:
            assert "chat template" in answer.get("error", ""), (label, error)
    assert rendered > 20


SPECIAL_TOKENS = """
{%- for message in messages %}{{ message.content }}{% endfor %}
{{ bos_token is defined }} {{ eos_token is defined }} {{ pad_token is defined }}
{%- if cls_token is not defined %} {{ eos_token }}{% endif -%}
"""


@pytest.mark.parametrize("absent", ("bos_token", "eos_token", "pad_token"))
def test_special_tokens_that_a_model_lacks_are_undefined(absent, ask):
    tokens = {**renderer.TOKENS, absent: ""}
    messages = [conversations.user("hi")]
    template = renderer.Template(SPECIAL_TOKENS)
    text, error, _ = render(template, messages, None, tokens)
    assert error is None and "False" in text
    for body in bodies(messages, None, {}):
        [answer] = ask([chat(SPECIAL_TOKENS, body, tokens)])
        assert answer.get("prompt") == text, answer


# Vocabulary -> a template and the tokens that are its own. Llama's tokenizers
# put the bos token in front, and these templates do too.
VOCABULARIES = {
    DEFAULT: (DEFAULT, "<|im_start|>", "<|im_end|>"),
    "llama-bpe": (
        "meta-llama-Llama-3.1-8B-Instruct",
        "<|begin_of_text|>",
        "<|end_of_text|>",
    ),
    "llama-spm": ("mistralai-Mistral-Nemo-Instruct-2407", "<s>", "</s>"),
    "qwen2": ("Qwen-Qwen2.5-7B-Instruct", "", "<|im_end|>"),
    "phi-3": ("microsoft-Phi-3.5-mini-instruct", "<s>", "<|endoftext|>"),
}
DOUBLED = {"llama-bpe", "llama-spm"}


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_template_goldens_as_ids(vocabulary, request, ask):
    name, bos, eos = VOCABULARIES[vocabulary]
    if vocabulary == DEFAULT:
        model = request.getfixturevalue("default_model")
        path = model / "tokenizer.json"
    else:
        _, path = request.getfixturevalue("rebuilt")[vocabulary]
    theirs = tokenizers.Tokenizer.from_file(str(path))
    source = source_of(name, request)
    template = renderer.Template(source)
    tokens = {**renderer.TOKENS, "bos_token": bos, "eos_token": eos}
    texts = []
    requests = []
    for messages, tools, variables in CASES.values():
        more = {**variables, **tokens}
        text, error, _ = render(template, messages, tools, more)
        if error is None:
            for body in bodies(messages, tools, variables):
                texts.append(text)
                requests.append(chat(source, body, tokens, tokenizer=str(path)))
    assert len(texts) > 20
    for text, answer in zip(texts, ask(requests)):
        ids = theirs.encode(text, add_special_tokens=True).ids
        first = theirs.token_to_id(bos)
        is_doubled = first is not None and ids[:2] == [first, first]
        assert is_doubled == (vocabulary in DOUBLED)
        if is_doubled:
            # What transformers gives: its templates bring all special tokens.
            ids = theirs.encode(text, add_special_tokens=False).ids
            assert ids[0] == first != ids[1]
        assert answer.get("ids") == ids, answer

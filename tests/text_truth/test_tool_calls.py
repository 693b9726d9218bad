"""What templates write of a call that was made is what our routers read of one
that is made."""

import json
import re

import conversations
import renderer

# Their markup is one that we know. Others write theirs in forms of their own:
# such calls stay text.
READ = {
    "Bielik-11B-v3.0-Instruct",
    "MiMo-VL",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "Reka-Edge",
    "StepFun3.5-Flash",
    "google-gemma-4-31B-it",
    "google-gemma-4-31B-it-interleaved",
    "ibm-granite-granite-4.0",
    "ibm-granite-granite-4.1",
    "meta-llama-Llama-3.1-8B-Instruct",
    "meta-llama-Llama-3.2-3B-Instruct",
    "meta-llama-Llama-3.3-70B-Instruct",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "openai-gpt-oss-120b",
    "openbmb-MiniCPM5-1B",
    "unsloth-mistral-Devstral-Small-2507",
}
# What prompts say of thoughts that shall not be, and what ends an answer.
NO_THOUGHT = re.compile(
    r"(<think>\s*</think>\s*|<\|channel>thought\n<channel\|>)$"
)
END = re.compile(
    r"(<\|(eot_id|im_end|end_of_text|tool_response)\|?>|<turn\|>|<sep>|</s>)\s*$"
)
# What closes the thought that a prompt has begun.
BEGUN_THOUGHT = re.compile(r"^\s*</think>\s*")
# gpt-oss's messages are told from text that spells them.
SPECIAL = {
    "openai-gpt-oss-120b": [
        "<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>",
    ],
}  # fmt: skip
QUESTION = conversations.user("How warm?")
MADE = [conversations.KOELN, conversations.PARIS, conversations.EMPTY_CALL]


def answer_with(template, call):
    """What the model is shown to have said, or None."""
    variables = {"tools": conversations.TOOLS, "enable_thinking": False}
    prompt, _, _ = template.render(
        {"messages": [QUESTION], "add_generation_prompt": True, **variables}
    )
    message = conversations.assistant("", tool_calls=[call])
    whole, _, _ = template.render(
        {
            "messages": [QUESTION, message],
            "add_generation_prompt": False,
            **variables,
        }
    )
    if prompt is None or whole is None:
        return None
    start = NO_THOUGHT.sub("", prompt)
    if not whole.startswith(start):
        return None
    return END.sub("", BEGUN_THOUGHT.sub("", whole.removeprefix(start)))


def is_read(answer, made):
    """True iff the answer is this call, and nothing else."""
    if len(answer["calls"]) != 1 or answer["content"]:
        return False
    name, _, arguments = answer["calls"][0].partition("(")
    function = made["function"]
    return (name, json.loads(arguments[:-1])) == (
        function["name"], function["arguments"],
    )  # fmt: skip


def test_calls_of_templates_are_read(sources, ask):
    body = json.dumps({"tools": conversations.TOOLS})
    read = set()
    for path in sorted((sources / "templates").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        template = renderer.Template(source)
        texts = [answer_with(template, call) for call in MADE]
        if None in texts:
            continue
        requests = [
            {
                "op": "route",
                "template": source,
                "special": SPECIAL.get(path.stem, []),
                "text": text,
                "body": body,
            }
            for text in texts
        ]
        answers = ask(requests)
        if all(map(is_read, answers, MADE)):
            read.add(path.stem)
    assert read == READ

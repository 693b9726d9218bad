"""What chat templates are given: CASES, name -> variables of the template."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather at a place, \"now\" or later.",
        "parameters": {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "City & country, e.g. 'Köln, Germany' <here>",
                },
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "minimum": 1, "default": 3},
            },
            "required": ["location"],
        },
    },
}
ORDER = {
    "type": "function",
    "function": {
        "name": "place_order",
        "description": "Order things.\nOver two lines.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {
                "customer": {
                    "type": "object",
                    "description": "Who orders",
                    "properties": {
                        "name": {"type": "string"},
                        "age": {"type": ["integer", "null"]},
                        "address": {
                            "type": "object",
                            "properties": {
                                "street": {"type": "string", "maxLength": 80},
                                "tags": {
                                    "type": "array",
                                    "items": {"type": "string"},
                                },
                            },
                            "required": ["street"],
                        },
                    },
                    "required": ["name"],
                },
                "items": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {
                            "sku": {"type": "string", "pattern": "^[A-Z]\\d+$"},
                            "count": {"type": "number", "default": 1.0},
                        },
                        "additionalProperties": False,
                    },
                },
                "note": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "nullable": True,
                },
                "limit": {"type": "number", "maximum": 1e20, "minimum": 1e-7},
            },
            "required": ["customer", "items"],
        },
        "return": {"type": "string", "description": "The order's number"},
    },
}
NO_PARAMETERS = {
    "type": "function",
    "function": {
        "name": "now",
        "description": "",
        "parameters": {"type": "object", "properties": {}},
    },
}
TOOLS = [WEATHER, ORDER, NO_PARAMETERS]


def system(text="You are terse."):
    return {"role": "system", "content": text}


def user(text="Hello, who are you?"):
    return {"role": "user", "content": text}


def assistant(text="A program.", **more):
    return {"role": "assistant", "content": text, **more}


def call(name, arguments, identity):
    function = {"name": name, "arguments": arguments}
    return {"type": "function", "id": identity, "function": function}


def result(text, identity, name="get_weather"):
    return {
        "role": "tool",
        "tool_call_id": identity,
        "name": name,
        "content": text,
    }


KOELN = call("get_weather", {"location": "Köln", "unit": "celsius"}, "call00001")
PARIS = call("get_weather", {"location": "Paris <75>", "days": 2}, "call00002")
NESTED = call(
    "place_order",
    {
        "customer": {
            "name": "O'Brien \"Bob\"",
            "age": None,
            "address": {"street": "1 \\ Main\nSt", "tags": ["a", "ü", "😀"]},
        },
        "items": [{"sku": "A1", "count": 1.5}, {"sku": "B2", "count": 1e-7}],
        "gift": True,
        "express": False,
        "total": -12,
        "big": 12345678901234567890,
        "empty": {},
        "none": [],
    },
    "call00003",
)
EMPTY_CALL = call("now", {}, "call00004")
AS_TEXT = call("get_weather", '{"location": "Köln"}', "call00005")

UNICODE = (
    "  naïve café 日本語 한국어 العربية עברית हिन्दी 👩‍👩‍👧‍👦 🇩🇪 e\u0301 \u200b\u202eabc\u202c"
    " \u00a0\t<|im_end|> <s> [INST] </s> {{ x }} {% y %} 'q' \"d\" \\n & <b>"
    "\r\n\n  line\u2028end\x00\x7f  \n"
)
THOUGHTS = "\nFirst, think.\n\nThen <answer>.\n"

WITH_CALL = [
    user("How warm is it?"),
    assistant("", tool_calls=[KOELN]),
    result('{"temperature": 21.5, "unit": "°C"}', "call00001"),
]
CONVERSATIONS = {
    "user": [user()],
    "system": [system(), user()],
    "empty system": [system(""), user()],
    "turns": [user("1"), assistant("2"), user("3"), assistant("4"), user("5")],
    "system and turns": [system(), user("1"), assistant("2"), user("3")],
    "developer": [{"role": "developer", "content": "Be brief."}, user()],
    "assistant last": [system(), user(), assistant("Once upon")],
    "assistant first": [assistant("Hi."), user()],
    "two users": [user("a"), user("b")],
    "two assistants": [user("a"), assistant("b"), assistant("c"), user("d")],
    "late system": [user("a"), assistant("b"), system("Now shout."), user("c")],
    "two systems": [system("one"), system("two"), user()],
    "unknown role": [{"role": "critic", "content": "Bad."}],
    "unicode": [system(UNICODE), user(UNICODE), assistant(UNICODE), user()],
    "empty texts": [user(""), assistant(""), user("")],
    "thoughts in the text": [
        user("1"),
        assistant("<think>\nhm\n</think>\n\n2"),
        user("3"),
        assistant("<think>hm</think>4"),
        user("5"),
    ],
    "reasoning": [
        system(),
        user("1"),
        assistant("2", reasoning_content=THOUGHTS),
        user("3"),
        assistant("4", reasoning_content="More."),
    ],
    "reasoning and a question": [
        user("1"),
        assistant("2", reasoning_content=THOUGHTS),
        user("3"),
    ],
    "text parts": [
        {"role": "system", "content": [{"type": "text", "text": "Be terse."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "One. "},
                {"type": "text", "text": "Two."},
            ],
        },
    ],
    "image part": [
        {
            "role": "user",
            "content": [
                {"type": "image", "image": "a.png"},
                {"type": "text", "text": "What is it?"},
            ],
        },
    ],
}
TOOL_CONVERSATIONS = {
    "tools": [user("How warm is it?")],
    "tools and system": [system(), user("How warm is it?")],
    "tools, turns": [system(), user("1"), assistant("2"), user("3")],
    "call": [user("How warm?"), assistant("", tool_calls=[KOELN])],
    "call without content": [
        user("How warm?"),
        {"role": "assistant", "tool_calls": [KOELN]},
        result("21", "call00001"),
    ],
    "call with null content": [
        user("How warm?"),
        assistant(None, tool_calls=[KOELN]),
        result("21", "call00001"),
    ],
    "result": WITH_CALL,
    "answer": WITH_CALL + [assistant("21.5 degrees."), user("And now?")],
    "system, answer": [system()] + WITH_CALL + [assistant("21.5.")],
    "text and call": [
        user("How warm?"),
        assistant("Let me look.", tool_calls=[KOELN]),
        result("21", "call00001"),
        assistant("21."),
    ],
    "two calls": [
        user("How warm?"),
        assistant("", tool_calls=[KOELN, PARIS]),
        result("21", "call00001"),
        result("25", "call00002"),
    ],
    "nested arguments": [
        user("Order!"),
        assistant("", tool_calls=[NESTED]),
        result("#17\n", "call00003", "place_order"),
    ],
    "no arguments": [
        user("When?"),
        assistant("", tool_calls=[EMPTY_CALL]),
        result("noon", "call00004", "now"),
    ],
    "arguments as text": [
        user("How warm?"),
        assistant("", tool_calls=[AS_TEXT]),
        result("21", "call00005"),
    ],
    "two steps": [
        user("Compare."),
        assistant("", tool_calls=[KOELN], reasoning_content="Köln first."),
        result("21", "call00001"),
        assistant("", tool_calls=[PARIS], reasoning_content="Then Paris."),
        result("25", "call00002"),
        assistant("Paris.", reasoning_content="25 > 21"),
        user("Sure?"),
    ],
    "result as parts": [
        user("How warm?"),
        assistant("", tool_calls=[KOELN]),
        {
            "role": "tool",
            "tool_call_id": "call00001",
            "content": [{"type": "text", "text": "21"}],
        },
    ],
    "result without a call": [user("a"), result("21", "call00001")],
    "unicode tools": [
        user(UNICODE),
        assistant("", tool_calls=[call("now", {"é": UNICODE}, "call00006")]),
        result(UNICODE, "call00006", "now"),
    ],
}
DOCUMENTS = [
    {"title": "On heat", "text": "It rises.", "doc_id": 1},
    {"title": "Auf Deutsch", "text": "Wärme & Kälte\n"},
]
# What single templates ask for.
VARIABLES = {
    "low effort": {"reasoning_effort": "low"},
    "high effort": {"reasoning_effort": "high", "tools": TOOLS},
    "built-in tools": {"builtin_tools": ["browser", "python"], "tools": TOOLS},
    "identity": {"model_identity": "You are someone else."},
    "date": {"date_string": "01 Jan 2026"},
    "tools in the user's turn": {"tools_in_user_message": False, "tools": TOOLS},
    "documents": {"documents": DOCUMENTS},
    "documents and tools": {"documents": DOCUMENTS, "tools": TOOLS},
    "thinking on": {"thinking": True},
    "preserved thinking": {"preserve_thinking": True, "clear_thinking": False},
}


def _cases():
    for name, messages in CONVERSATIONS.items():
        yield name, {"messages": messages}
    for name, messages in TOOL_CONVERSATIONS.items():
        yield name, {"messages": messages, "tools": TOOLS}
        if name.startswith(("call", "result", "answer")):
            yield f"{name}, no tools", {"messages": messages}
    for name, variables in VARIABLES.items():
        for base in ("system and turns", "reasoning"):
            yield (
                f"{name}, {base}",
                {"messages": CONVERSATIONS[base], **variables},
            )
        yield (
            f"{name}, two steps",
            {"messages": TOOL_CONVERSATIONS["two steps"], **variables},
        )


def _variants(name, variables):
    for prompt in (True, False):
        for thinking in (None, True, False):
            label = name + (", prompt" if prompt else "")
            more = {"add_generation_prompt": prompt}
            if thinking is not None:
                label += f", enable_thinking={thinking}"
                more["enable_thinking"] = thinking
            yield label, {**variables, **more}


CASES = {
    label: case
    for name, variables in _cases()
    for label, case in _variants(name, variables)
}

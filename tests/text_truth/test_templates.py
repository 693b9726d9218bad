"""Chat templates against the renderer of transformers: those of many models,
and single features of the language."""

import json
import re

import jinja2
import pytest

import conversations
import features
import renderer

# Where transformers fails, because None has no items or JSON has no
# generators, we render: a conversation without tools is no reason to refuse a
# template that always looks at them. Template -> transformers' error.
MORE_THAN_TRANSFORMERS = {
    "Cohere2MoE": "'NoneType' object is not iterable",
    "CohereForAI-c4ai-command-r-plus-tool_use": (
        "'NoneType' object is not iterable"
    ),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": (
        "'NoneType' object is not iterable"
    ),
    "LFM2.5-8B-A1B": "'NoneType' object is not iterable",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": (
        "'NoneType' object is not iterable"
    ),
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": (
        "'NoneType' object is not iterable"
    ),
    "llama-cpp-deepseek-r1": "Object of type generator is not JSON serializable",
}
# Jinja escapes as HTML what is added to a string that was marked safe, though
# nothing here is HTML; we add it as it is.
ESCAPES_WHAT_IS_ADDED = {"meetkai-functionary-medium-v3.1"}


def one_line(message):
    """As messages are shown."""
    parts = re.split("[\x00-\x1f\x7f-\x9f]", message)
    return " ".join(part.strip() for part in parts if part.strip())


class Case:
    """Both renderings of one template."""

    def __init__(self, template, name, variables):
        self.name = name
        self.text, self.error, context = template.render(variables)
        self.request = {
            "op": "render",
            "template": template.source,
            "context": json.dumps(context),
            "now": renderer.NOW_SECONDS,
        }
        self.answer = None

    def is_raised(self):
        """True iff the template called raise_exception."""
        return type(self.error) is jinja2.exceptions.TemplateError

    def mismatch(self):
        """What differs, or None."""
        ours = self.answer.get("error")
        if self.error is None:
            if ours is not None:
                return f"{self.name}: we fail: {ours}"
            if self.answer["text"] != self.text:
                return f"{self.name}: {self.answer['text']!r} != {self.text!r}"
        elif ours is None:
            return f"{self.name}: transformers fails: {self.error!r}"
        elif self.is_raised() and ours != one_line(str(self.error)):
            return f"{self.name}: {ours!r} != {str(self.error)!r}"
        return None


def render_all(template, cases, ask):
    rendered = [Case(template, name, case) for name, case in cases.items()]
    answers = ask([case.request for case in rendered])
    for case, answer in zip(rendered, answers):
        case.answer = answer
    return rendered


def cases_for(source):
    """But for those whose variables the template does not look at."""
    seen = set()
    for name, case in conversations.CASES.items():
        used = {k: v for k, v in case.items() if k == "messages" or k in source}
        key = json.dumps(used)
        if key not in seen:
            seen.add(key)
            yield name, case


def test_the_default_models_template(default_template, ask):
    cases = dict(cases_for(default_template))
    rendered = render_all(renderer.Template(default_template), cases, ask)
    assert not [text for text in map(Case.mismatch, rendered) if text]


def test_all_templates(sources, ask):
    unexplained = []
    explained = set()
    count = 0
    for path in sorted((sources / "templates").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        template = renderer.Template(source)
        for case in render_all(template, dict(cases_for(source)), ask):
            count += 1
            mismatch = case.mismatch()
            if mismatch is None:
                continue
            explanation = MORE_THAN_TRANSFORMERS.get(path.stem)
            if explanation and case.error and explanation in str(case.error):
                explained.add(path.stem)
            elif path.stem in ESCAPES_WHAT_IS_ADDED and "&#34;" in case.text:
                explained.add(path.stem)
            else:
                unexplained.append(f"{path.stem}: {mismatch}")
    assert not unexplained, "\n".join(unexplained[:20])
    # None is on a list in vain.
    assert explained == set(MORE_THAN_TRANSFORMERS) | ESCAPES_WHAT_IS_ADDED
    assert count > 5000


@pytest.mark.parametrize(
    "name", ("meta-llama-Llama-3.1-8B-Instruct", "Qwen-Qwen3-0.6B")
)
def test_ten_thousand_messages(name, sources, ask):
    path = sources / "templates" / f"{name}.jinja"
    template = renderer.Template(path.read_text(encoding="utf-8"))
    messages = []
    for turn in range(2500):
        messages += [
            conversations.user(f"How warm is it on day {turn}?"),
            conversations.assistant("", tool_calls=[conversations.KOELN]),
            conversations.result(str(turn), "call00001"),
            conversations.assistant(f"{turn} degrees."),
        ]
    cases = {
        "words": {"messages": messages[::4] * 4, "tools": None},
        "calls": {"messages": messages, "tools": conversations.TOOLS},
    }
    for case in render_all(template, cases, ask):
        assert case.error is None
        assert case.mismatch() is None


@pytest.fixture(scope="module")
def feature_cases(ask):
    rendered = []
    for source in features.features():
        template = renderer.Template(source)
        rendered.append(Case(template, source, features.VARIABLES))
    answers = ask([case.request for case in rendered])
    for case, answer in zip(rendered, answers):
        case.answer = answer
    return rendered


def test_features_print_what_jinja_prints(feature_cases):
    listed = features.UNSUPPORTED.keys() | features.DIFFERENT.keys()
    found = {case.name: case.mismatch() for case in feature_cases}
    found = {name: text for name, text in found.items() if text}
    unlisted = [text for name, text in found.items() if name not in listed]
    assert not unlisted, "\n".join(unlisted)
    assert set(found) == listed


def test_features_that_are_not_supported_are_errors_that_name_them(
    feature_cases,
):
    for case in feature_cases:
        words = features.UNSUPPORTED.get(case.name)
        assert words is None or words in case.answer["error"]

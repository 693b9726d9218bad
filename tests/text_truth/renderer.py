"""Renders chat templates with transformers, at a fixed time."""

import datetime

import jinja2
from transformers.utils import chat_template_utils

NOW = datetime.datetime(2026, 7, 31, 12, 5, 9)
NOW_SECONDS = int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp())
TOKENS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}


def there(variables):
    """Without the special tokens that are empty: transformers has none."""
    return {
        name: value
        for name, value in variables.items()
        if name not in TOKENS or value
    }


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


class Recorder:
    """A compiled template that remembers its variables."""

    def __init__(self, template):
        self.template = template
        self.context = None

    def render(self, **context):
        self.context = context
        return self.template.render(**context)


class Template:
    def __init__(self, source):
        self.source = source
        self.recorder = None
        self.syntax_error = None
        try:
            compiled = chat_template_utils._compile_jinja_template(source)
            self.recorder = Recorder(compiled)
        except jinja2.exceptions.TemplateSyntaxError as error:
            self.syntax_error = error

    def render(self, variables):
        """(text or None, error or None, the variables the template saw)."""
        variables = there({**TOKENS, **variables})
        if self.syntax_error:
            return None, self.syntax_error, variables
        messages = variables.pop("messages", [])
        original = (
            chat_template_utils._compile_jinja_template,
            chat_template_utils.datetime,
        )
        chat_template_utils._compile_jinja_template = lambda _: self.recorder
        chat_template_utils.datetime = FixedTime
        try:
            rendered, _ = chat_template_utils.render_jinja_template(
                [messages], chat_template=self.source, **variables
            )
            return rendered[0], None, self.recorder.context
        except Exception as error:  # whatever a template may provoke
            return None, error, self.recorder.context
        finally:
            (
                chat_template_utils._compile_jinja_template,
                chat_template_utils.datetime,
            ) = original

"""A C++ file as a gate reads it: without comments and literals."""

import re

# Longest match first: a raw string may hold quotes, a literal may hold "//".
_NOT_CODE = re.compile(
    r"""
      //[^\n]*
    | /\*.*?\*/
    | R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)"
    | "(?:\\.|[^"\\\n])*"
    | (?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'
    """,
    re.VERBOSE | re.DOTALL,
)
_NOT_A_FUNCTION = re.compile(r"^\s*(?:inline\s+)?(?:namespace|extern)\b")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_TYPE = re.compile(r"\b(?:class|struct|union|enum)\b[^()]*$")
_CONTROL = re.compile(r"^\s*(?:\}\s*)?(?:if|else|for|while|switch|do|try|catch)\b")


def code_only(text):
    """The same lines, with comments and literals blanked out."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return _NOT_CODE.sub(blank, text)


def functions(text):
    """(first line from 1, number of lines) of each function and lambda body,
    from the line of its opening brace to that of its closing one."""
    found = []
    open_braces = []  # (line, is a function)
    header = ""
    line = 1
    # A directive is not part of what comes after it; its lines still count.
    code = _DIRECTIVE.sub(
        lambda match: "\n" * match.group().count("\n"), code_only(text)
    )
    for character in code:
        if character == "\n":
            line += 1
        if character == "{":
            is_function = (
                ")" in header
                and not _NOT_A_FUNCTION.match(header)
                and not _TYPE.search(header)
                and not _CONTROL.match(header)
            )
            open_braces.append((line, is_function))
            header = ""
        elif character == "}":
            if open_braces:
                start, is_function = open_braces.pop()
                if is_function:
                    found.append((start, line - start + 1))
            header = ""
        elif character == ";":
            header = ""
        else:
            header += character
    return sorted(found)

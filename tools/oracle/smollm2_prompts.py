"""The 20 prompts of tests/data/smollm2_greedy.json.

Each is a chat (a list of messages) or a text to be continued as it is. They are
chosen so that no answer passes through a near tie (MIN_GAP in
smollm2_golden.py).
"""


def user(text):
    return [{"role": "user", "content": text}]


def long_text():
    """About 600 tokens, so that the prompt spans two prefill chunks."""
    towns = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Hazel"]
    goods = ["apples", "bread", "candles", "dates", "eggs", "flour"]
    lines = ["A trader keeps a log of what was carried between the towns.\n"]
    for day in range(1, 31):
        start = towns[day % len(towns)]
        end = towns[(3 * day + 1) % len(towns)]
        lines.append(
            f"Day {day}: {4 * day + 7} crates of {goods[day % len(goods)]} "
            f"went from {start} to {end}.\n"
        )
    lines.append("In short, over these days the trader")
    return "".join(lines)


PROMPTS = {
    "capital": user("What is the capital of France?"),
    "greeting": user("Hello! Who are you?"),
    "arithmetic": user("What is 17 + 25? Show each step."),
    "system": [
        {"role": "system", "content": "You are a patient teacher of physics."},
        {"role": "user", "content": "Why is the sky blue?"},
    ],
    "second turn": [
        {"role": "user", "content": "Name a fruit that is yellow."},
        {"role": "assistant", "content": "A banana."},
        {"role": "user", "content": "Name another one, and say why."},
    ],
    "code question": user(
        "Write a Python function that returns the n-th Fibonacci number."
    ),
    "list": user("List five rules for a good night's sleep."),
    "poem": user("Write a short poem about the sea.\nFour lines, please."),
    "french": user("Quelle est la capitale de l'Italie ?"),
    "german": user("Erkläre kurz, wie ein Kühlschrank funktioniert."),
    "japanese": user("日本の首都はどこですか？"),
    "emoji": user("Answer with emoji only: 🐱 + 🏠 = ? 👩‍🚀"),
    "c code": (
        "#include <stdio.h>\n\n"
        "// Prints the first ten squares.\n"
        "int main(void) {\n  for (int i = 1;"
    ),
    "python code": (
        "class Stack:\n"
        '    """Last in, first out."""\n\n'
        "    def __init__(self):\n        self.items = []\n\n"
        "    def push(self, item):\n"
    ),
    "json": (
        '{"id": 7, "name": "Ada", "tags": ["a", "b"], '
        '"address": {"street": "'
    ),
    "numbers": "2, 4, 8, 16, 32, 64, 128, 256, 512,",
    "prose": "Once upon a time there was a fox who",
    "one token": "The",
    "whitespace": "\n\n\t  Table of contents\n\n1.  Introduction ..... 1\n2.",
    "long": long_text(),
}

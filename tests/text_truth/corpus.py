"""Texts that tokenizers get wrong: TEXTS, name -> text."""

import random

CODE = {
    "python": '''\
#!/usr/bin/env python3
"""Doc\\tstring."""
import os, sys


class Point(tuple):
\t"""Mixed tabs."""
    x: int = 0x1F; y: float = 1_000.5e-10

    def __add__(self, other: "Point") -> "Point":
        return Point((self[0] + other[0], self[1]+other[1]))  # don't, isn't


if __name__ == "__main__":
    print(f"{Point((1, 2)) + Point((3, 4))!r:>20}", file=sys.stderr)
    assert not (lambda *a, **k: a)(), "it's they're we've I'm you'll he'd"
''',
    "c++": """\
#include <vector>
template <typename T, size_t N = 1 << 10>
[[nodiscard]] constexpr auto f(T&& x) noexcept -> decltype(x->*y) {
\tstd::vector<std::vector<int>> v{{1, 2}, {3}};  // >> and >>>
  for (auto&& [k, u] : v) if (k != u && !(k ^= ~u)) goto end;
  return R"(raw \\n "string")"[0] <=> '\\0';
end:;
}
""",
    "rust": """\
impl<'a, T: ?Sized + 'static> Iterator for Iter<'a, T> {
    fn next(&mut self) -> Option<&'a T> { self.0?.get(..=1_u8)?; todo!() }
}
""",
    "javascript": """\
const f = async (x = {...y}, [z]) => await x?.z ?? `t ${x + `in ${z}`}`;
export default class extends A { static #p = /[^\\s\\d]+(?=\\$)/giu; }
""",
    "go": 'func (s *S) F(ch <-chan int) (err error) {\n\tdefer func() { <-ch }()\n'
    '\tif v, ok := m["k"]; !ok { s.x = append(s.x[:1], v...) }\n}\n',
    "java": "public static <T extends Comparable<? super T>> void s(List<T> l) {\n"
    "    l.stream().filter(Objects::nonNull).map(x -> x.y()).toList(); }\n",
    "shell": 'for f in "$@"; do [[ -e ${f%.*} ]] && cat <<\'EOT\' >&2 || exit $?\n'
    "\t$HOME `date` $(( 1 + 2 ))\nEOT\ndone 2>/dev/null | xargs -0 sed 's/a\\b/&/g'",
    "sql": "SELECT a.*, COUNT(DISTINCT b) FROM t AS a LEFT JOIN u USING(id)\n"
    "WHERE x LIKE '%y''z_' -- note\nGROUP BY 1 HAVING COUNT(*)>=10;",
    "html": "<!DOCTYPE html>\n<p class='a b'>x&nbsp;&amp;&#x27;<br/></p>"
    "<script>if(a<b&&c>d){}</script><!-- c -->",
    "css": "@media (max-width:600px){.a>.b~.c+#d::after{content:'\\201C';}}",
    "json": '{"a": [1, -2.50, 1e+10, null, true], "b\\u00e9": {"": "\\\\"}}\n',
    "latex": "\\begin{align*} \\frac{\\partial f}{\\partial x_{i}} &= \\sum"
    "_{k=0}^{\\infty} \\hat{\\beta}^{2k} \\\\ \\end{align*} $a\\ne b$",
    "diff": "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-\told\n+    new\n \n",
    "yaml": "a:\n  - b: |\n      c\n    d: !!str 'e'\n  - &x {f: [g, *x]}\n",
    "lisp": "(defun f (x) `(,x ,@(mapcar #'car '((a . b)))))",
    "haskell": "f :: (Monad m) => a -> m [a]\nf = liftM (:[]) . return <$> \\_ -> x\n",
}

WORDS = {
    "empty": "",
    "letter": "a",
    "space": " ",
    "english": "Hello, world! It's a test; isn't it? I'LL say so. don’t “quote”",
    "space first": " Hello",
    "two spaces first": "  Hello",
    "spaces last": "Hello   ",
    "german": "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "french": "L'œuvre d’art coûtait 1 000 € « à peu près », n'est-ce pas ?",
    "polish": "Zażółć gęślą jaźń ĄĆĘŁŃÓŚŹŻ",
    "turkish": "İstanbul'da ılık ışık, IĞDIR",
    "vietnamese": "Tiếng Việt có dấu: ữ ợ ặ ễ",
    "russian": "Съешь же ещё этих мягких французских булок",
    "greek": "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία ΆΈΉ ς σ",
    "chinese": "今天天气很好，我们去公园散步吧。「引號」繁體字龍龜鬱",
    "japanese": "すもももももももものうち。カタカナ ｶﾞｷﾞ ﾊﾟ 漢字かな交じり文",
    "korean": "안녕하세요 세계 ㄱㄴㄷ 각",
    "korean in parts": "한국어",
    "rare ideographs": "\U00020000\U0002a6d6\U00030000 𠮷野家",
    "thai": "สวัสดีชาวโลก น้ำ ที่",
    "hindi": "नमस्ते दुनिया क्षत्रिय ज़िन्दगी",
    "tamil": "வணக்கம் உலகம் கொ",
    "bengali": "আমি বাংলায় গান গাই",
    "burmese": "မင်္ဂလာပါ",
    "khmer": "សួស្តីពិភពលោក",
    "arabic": "مرحبا بالعالم، كيف حالُكَ؟ لا إله ١٢٣",
    "persian": "سلام دنیا می‌خواهم ۱۲۳",
    "hebrew": "שלום עולם, מה נשמע? שָׁלוֹם ₪100",
    "both ways": "abc \u202bאבג 123\u202c def \u200fمرحبا\u200e! (א)",
    "georgian": "გამარჯობა ᲒᲐᲛᲐᲠᲯᲝᲑᲐ",
    "cherokee": "ᎣᏏᏲ ꭳꮟᏺ",
    "old scripts": "𐎠𐏂 𒀀𒁉 𓀀𓁐 ᚠᚢᚦ",
    "mathematics": "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, 𝐱𝒚𝔷 ≤ ∑²ₙ½ ⅷ ①",
    "wide": "ＦＵＬＬｗｉｄｔｈ　１２３！",
    "ligatures": "ﬁ ﬂ ﬃ ǆ ŉ ﷺ",
}

EMOJI = {
    "faces": "😀😃 😄🙂🙃 :-) ☺☺️",
    "families": "👩‍👩‍👧‍👦 👨‍👩‍👧 🧑‍🤝‍🧑 👩🏽‍❤️‍💋‍👨🏿",
    "flags": "🇩🇪🇫🇷🇺🇳 🇩🇪x🇩 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏳️‍🌈 🏴‍☠️",
    "skin tones": "👍👍🏻👍🏿 🤚🏽 👩🏾‍🚀",
    "keycaps": "1️⃣2️⃣#️⃣ ©️ ™",
    "new": "🫠🫨🫩 🛜🪿",
    "between words": "a😀b 😀 c\n😀",
}

MARKS = {
    "combining": "e\u0301 a\u0308 n\u0303 \u0301x o\u0308\u0304",
    "composed": "é ä ñ ȫ",
    "many marks": "Z" + "\u0351\u036b\u0343" * 12 + "a\u0321\u0337\u0360l\u0353",
    "ring": "\u212b \u00c5 A\u030a",
    "stable under nfc": "\u0958 \u2126 \u1e9b\u0323",
    "selectors": "a\ufe0f b\ufe0e c\U000e0100",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufefff \ufeff",
    "soft hyphen": "Donau\u00addampf",
    "private": "\ue000\uf8ff \U000f0000\U0010fffd",
    "non-characters": "\ufffe\uffff\ufdd0 \U0001ffff",
    "replacement": "\ufffd a\ufffd\ufffdb",
}

SPACES = {
    "spaces": "a" + " " * 17 + "b" + " " * 64 + "c" + " " * 300 + "d",
    "only spaces": " " * 130,
    "tabs": "\t\ta\t \tb" + "\t" * 40 + "c",
    "lines": "\n\na\n\n\nb\n \n\t\nc" + "\n" * 50,
    "crlf": "a\r\nb\r\n\r\nc\rd\n\re\r\n  f",
    "space and lines": "a  \n  b   \n\n   c \n",
    "other spaces": "a\u00a0b\u2003c\u3000d\u2028e\u2029f\u0085g\u1680h\u202fi\u205fj",
    "vertical": "a\vb\fc",
    "indented": "if x:\n" + "".join(" " * n + f"y{n}\n" for n in range(20)),
    "space before marks": "a ,b .c !d ?e 's f 't n't do not",
}

NUMBERS = {
    "digits": "0 1 12 123 1234 12345 123456 1234567 12345678 00001234",
    "long": "9" * 100 + " 3" * 30,
    "decimals": "3.14159 1,234,567.89 -1e-10 0x7fff 1/2 50% $5.00 #7 v1.2.3",
    "dates": "2024-02-29T23:59:59.999Z 1.1.70 12:30pm 192.168.0.1:8080",
    "other digits": "٠١٢٣ ०१२३ ０１２ ²³ ½ ⅓ Ⅻ 一二三 𝟎𝟏",
    "mixed": "a1b22c333d4444 x86_64 utf8mb4 COVID19 3D 2nd 1st",
}

SPECIAL = {
    "chatml": "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "end of text": "a<|endoftext|>b <|endoftext|> c<|endoftext|>",
    "llama 3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nx"
    "<|eot_id|><|eom_id|><|python_tag|><|reserved_special_token_0|>",
    "llama 2": "<s>[INST] <<SYS>>\nx\n<</SYS>>\n\ny [/INST] z </s><s> <unk>",
    "phi": "<|system|>\nx<|end|>\n<|user|>y<|end|><|assistant|>",
    "gemma": "<bos><start_of_turn>user\nx<end_of_turn>\n<eos><pad><unused5>",
    "cohere": "<BOS_TOKEN><|START_OF_TURN_TOKEN|><|USER_TOKEN|>x<|END_OF_TURN_TOKEN|>",
    "code": "<fim_prefix>a<fim_suffix>b<fim_middle> <filename>x<gh_stars>1<repo_name>",
    "broken": "<|im_start|<|im_end |><|im_end|<|im_end|>> < |im_end|> <|IM_END|>",
    "joined": "a<|im_end|>b<|im_end|><|im_end|> <|im_end|>\n<|im_end|>  c </s></s>",
    "bytes": "<0x41><0x0A> <0xFF> <0xE2><0x82><0xAC>",
    "marks": "\u2581a\u2581\u2581b \u2581 c \u0120d\u010ae",
    "tags": "<think>\nhm\n</think> <tool_call>\n{}</tool_call>",
}

CONTROLS = {
    "nul": "a\x00b\x00\x00 \x00",
    "c0": "".join(chr(c) for c in range(32)) + "\x7f",
    "c1": "x" + "".join(chr(c) for c in range(0x80, 0xA0)) + "y",
    "escape": "\x1b[31mred\x1b[0m\x07\x08",
    "latin 1": "".join(chr(c) for c in range(0xA0, 0x100)),
}

LONG = {
    "word": "Donaudampfschifffahrtsgesellschaft" * 20,
    "one letter": "a" * 2000,
    "capitals": "ABCDEFGHIJKLMNOPQRSTUVWXYZ" * 10,
    "base64": "TWFueSBoYW5kcyBtYWtlIGxpZ2h0IHdvcmsu+/==" * 12,
    "url": "https://example.com/a/b-c_d.html?q=1&r=%20x#frag" + "/x" * 60,
    "cases": "camelCaseHTTPServer snake_case_name SCREAMING_CASE kebab-case-x",
    "punctuation": "!!!??...---___***###===+++~~~```///\\\\\\|||" * 4 + "…—–",
    "ideographs": "的一是不了人我在有他这中大来上国" * 30,
    "one emoji": "😀" * 100,
    "quotes": "'''\"\"\"``''\u2018\u2019\u201c\u201d«»‹›",
}

_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABC abc 012 .,;:!?'\"()[]{}<>|/\\@#$%^&*_-+=~`",
    " \t\n\r\u00a0\u3000",
    "äöüßéèñçøåłğş",
    "абвгдежзийклмноп",
    "的一是在不了有和人这中大为上个国",
    "あいうえおカキクケコ",
    "가나다라마바사",
    "אבגדהוזחטי",
    "ابتثجحخد\u064b\u064e",
    "अआइकखग\u093e\u094d",
    "😀😃🚀👍\U0001f3fd\u200d\ufe0f🇩🇪",
    "\u0301\u0308\u0327\u200b\u200d\ufeff",
    "0123456789٠१②",
    "\x00\x01\x1b\x7f\x85\x9f",
)
_PIECES = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "</s>",
    "<s>",
    "<0x0A>",
    "\u2581",
    "'ll",
    " the",
    "\r\n",
    "    ",
)


def _generated(count, seed):
    """Runs of characters of one alphabet each, and tokens' names."""
    rng = random.Random(seed)
    for number in range(count):
        parts = []
        for _ in range(rng.randint(1, 12)):
            if rng.random() < 0.1:
                parts.append(rng.choice(_PIECES))
                continue
            alphabet = rng.choice(_ALPHABETS)
            size = rng.choice((1, 1, 2, 3, 5, 8, 20))
            parts.append("".join(rng.choices(alphabet, k=size)))
            if rng.random() < 0.3:
                parts.append(" ")
        yield f"generated {number}", "".join(parts)


def _any_characters(count, seed):
    """Any characters of Unicode."""
    rng = random.Random(seed)
    limits = (0x80, 0x800, 0x3000, 0x10000, 0x110000)
    for number in range(count):
        codes = [rng.randrange(rng.choice(limits)) for _ in range(40)]
        text = "".join(chr(c) for c in codes if not 0xD800 <= c < 0xE000)
        yield f"any characters {number}", text


TEXTS = {
    f"{group}: {name}": text
    for group, texts in (
        ("code", CODE),
        ("words", WORDS),
        ("emoji", EMOJI),
        ("marks", MARKS),
        ("spaces", SPACES),
        ("numbers", NUMBERS),
        ("special", SPECIAL),
        ("controls", CONTROLS),
        ("long", LONG),
        ("mixed", dict(_generated(150, seed=4))),
        ("mixed", dict(_any_characters(50, seed=5))),
    )
    for name, text in texts.items()
}

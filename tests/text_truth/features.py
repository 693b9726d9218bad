"""Templates that use a feature of the language each."""

import re

VARIABLES = {
    "s": "Hello, World",
    "padded": " \t x y \n\n",
    "lines": "a\nb\r\nc\n\nd",
    "empty": "",
    "unicode": "ÄÖ ß é😀日本",
    "quotes": "it's \"q\" \\ \n\t\x01 é",
    "html": "<a href='x'>&\"</a>",
    "n": 5,
    "negative": -7,
    "zero": 0,
    "f": 2.5,
    "whole": 3.0,
    "tiny": 1e-7,
    "huge": 1e20,
    "third": 0.1,
    "large": 12345678901234567890,
    "yes": True,
    "no": False,
    "none": None,
    "list": [3, 1, 2],
    "words": ["b", "A", "c"],
    "mixed": [1, "two", 3.0, None, True, [4, {"k": "v"}], {"x": 1e-7}],
    "nothing": [],
    "dict": {"b": 1, "a": "x", "c": None},
    "empty_dict": {},
    "nested": {"a": {"b": [10, {"c": "deep"}]}, "items": 5, "keys": [1]},
    "rows": [
        {"name": "x", "n": 2, "ok": True},
        {"name": "y", "n": 1, "ok": False},
        {"name": "z", "n": 2, "ok": True},
    ],
}

# What has to print what Jinja prints, and to fail where Jinja fails.
FEATURES = r"""
{{ f }} {{ whole }} {{ tiny }} {{ huge }} {{ third }} {{ large }} {{ negative }}
{{ [f, whole, tiny, huge, third] }} {{ {'k': tiny} }} {{ mixed }}
{{ tiny ~ huge ~ f }} {{ tiny|string }} {{ 'x' + huge|string }} {{ [tiny]|join }}
{{ yes }} {{ no }} {{ none }} {{ [yes, no, none] }} {{ true }} {{ True }} {{ None }}
{{ none ~ yes ~ 1 }} {{ none|string }} {{ none|trim }} {{ [none]|join(',') }}
{{ dict }} {{ empty_dict }} {{ nothing }} {{ quotes }} {{ [quotes] }} {{ {'q': quotes} }}
{{ ['\'', '"', '\'"', '\\', '\n', 'é', '\x7f', '\u200b', '\u00a0', '\u2028', '😀'] }}
{{ (1, 2) }} {{ (1,) }} {{ () }} {{ [(1, 'a')] }} {{ dict.items()|list }}
{{ undefined_name }} {{ [undefined_name] }} {{ undefined_name ~ 'x' }}
{{ undefined_name.x }}
{{ dict.missing }} {{ dict['missing'] }} {{ dict.missing is defined }}
{{ dict.missing.more }}
{{ s.missing }} {{ none.missing }} {{ n.missing is defined }}
{{ none['x'] }}
{{ list[10] is defined }} {{ list[-1] }} {{ list[-10] is defined }}
{{ s|tojson }} {{ quotes|tojson }} {{ html|tojson }} {{ mixed|tojson }} {{ huge|tojson }}
{{ nested|tojson(indent=2) }}
{{ nested|tojson(indent=4, ensure_ascii=true) }}
{{ unicode|tojson(ensure_ascii=True) }} {{ unicode|tojson(ensure_ascii=False) }}
{{ dict|tojson(sort_keys=True) }} {{ dict|tojson(separators=(',', ':')) }}
{{ dict|tojson(indent=0) }} {{ dict|tojson(indent='--') }} {{ dict|tojson(indent=none) }}
{{ nothing|tojson(indent=2) }} {{ empty_dict|tojson(indent=2) }} {{ [[], {}]|tojson(indent=1) }}
{{ dict|tojson(separators=['; ', '=']) }} {{ dict|tojson(True) }} {{ dict|tojson(False, 2) }}
{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}
{{ (1, 2)|tojson }} {{ undefined_name|tojson }}
{{ list|map('string')|list|tojson }}
{{ dict.items()|list|tojson }} {{ range(3)|list|tojson }}
{{ '\u2028\x7f\x1f'|tojson }} {{ '\x7fé'|tojson(ensure_ascii=true) }}
{{ s|upper }} {{ s|lower }} {{ s|title }} {{ s|capitalize }} {{ 'hello wORLD'|capitalize }}
{{ "they're bill's"|title }} {{ "they're bill's".title() }} {{ 'a-b c_d'|title }} {{ 'a-b c_d'.title() }}
{{ s|length }} {{ s|count }} {{ list|length }} {{ dict|length }} {{ unicode|length }}
{{ none|length }}
{{ n|length }}
{{ undefined_name|length }}
{{ s|first }} {{ s|last }} {{ list|first }} {{ list|last }} {{ nothing|first }} {{ nothing|last }}
{{ list|sort }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ list|sort(reverse=true) }}
{{ rows|sort(attribute='n')|map(attribute='name')|join }} {{ rows|sort(attribute='n,name')|map(attribute='name')|join }}
{{ list|reverse|list }} {{ s|reverse }} {{ list|min }} {{ list|max }} {{ list|sum }} {{ words|min }}
{{ rows|sum(attribute='n') }} {{ rows|map(attribute='n')|list }} {{ rows|map(attribute='q', default='d')|list }}
{{ words|map('upper')|list }} {{ words|map('replace', 'b', 'B')|join }} {{ list|map('string')|list }}
{{ rows|selectattr('ok')|list|length }} {{ rows|selectattr('n', 'equalto', 2)|map(attribute='name')|join }}
{{ rows|rejectattr('ok')|map(attribute='name')|list }} {{ rows|selectattr('n', '==', 1)|first }}
{{ rows|selectattr('n', 'gt', 1)|list|length }} {{ rows|selectattr('q', 'defined')|list }}
{{ rows|selectattr('name', 'in', ['x', 'z'])|map(attribute='name')|join(',') }}
{{ list|select('odd')|list }} {{ list|reject('odd')|list }} {{ list|select('gt', 1)|list }} {{ [0, 1, '']|select|list }}
{{ rows|groupby('n')|length }} {% for k, g in rows|groupby('n') %}{{ k }}:{{ g|length }} {% endfor %}
{% for g in rows|groupby('n') %}{{ g.grouper }}={{ g.list|map(attribute='name')|join }} {% endfor %}
{{ words|join }} {{ words|join(', ') }} {{ list|join('-') }} {{ rows|join(',', attribute='name') }} {{ s|join('.') }}
{{ [1, 1.0, 2, 'a', 'A']|unique|list }} {{ list|batch(2)|list }} {{ list|batch(2, 0)|list }} {{ list|slice(2)|list }}
{{ s|replace('l', 'L') }} {{ s|replace('l', 'L', 1) }} {{ n|replace('5', '6') }}
{{ padded|trim }}| {{ '--x--'|trim('-') }} {{ n|trim }} {{ s|trim|length }}
{{ none|default('d') }} {{ undefined_name|default('d') }} {{ empty|default('d', true) }} {{ none|default('d', true) }} {{ empty|d('x') }} {{ undefined_name|default }}|
{{ undefined_name|default(default_value='q') }} {{ none|default('q', boolean=true) }}
{{ undefined_name|default(none) }} {{ undefined_name|default(default_value=none) is none }} {{ undefined_name|default(none, true) is none }} {{ undefined_name|default(undefined_name) is defined }} {{ 'q'|int(none) }} {{ 'q'|int(default=none) }} {{ 'q'|float(none) }} {{ '3'|int(0, base=none) }}
{{ '3.7'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ '12'|int }} {{ 'x'|int }} {{ '3.9'|int }} {{ '0x1F'|int(base=16) }} {{ f|int }} {{ negative|abs }}
{{ 2.567|round(1) }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.1|round(method='ceil') }} {{ 2.9|round(0, 'floor') }} {{ 5|round }}
{{ dict|items|list }} {{ dict|dictsort }} {{ {'b': 1, 'A': 2}|dictsort }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }} {{ {'b': 1, 'a': 2}|dictsort(reverse=true) }}
{{ dict|list }} {{ s|list|length }} {{ 'abc'|list }} {{ dict|first }}
{{ html|e }} {{ html|escape }} {{ html|safe }} {{ html|e|e }}
{{ 'a'|safe ~ '<b>' }} {{ '<b>'|safe|upper }} {{ ('<'|safe) * 2 }}
{{ lines|indent }} {{ lines|indent(2, true) }} {{ lines|indent(width=2, blank=true) }} {{ lines|indent('>>') }} {{ lines|indent(first=true) }}
{{ '%s is %d'|format('x', 5) }} {{ '%.2f'|format(f) }} {{ '%5d|%-5d|%05d'|format(n, n, n) }} {{ '%(a)s'|format(a=1) }}
{{ '{} {}'.format('a', 1) }} {{ '{1} {0}'.format('a', 1) }} {{ '{x}'.format(x=2) }} {{ '{:>5}|{:<5}|{:^5}|'.format('a', 'b', 'c') }} {{ '{:.2f}'.format(f) }} {{ '{:05d} {:,} {:x}'.format(n, 1234567, 255) }}
{{ '{{}} {}'.format(none) }} {{ '{0[k]}'.format({'k': 1}) }} {{ '{}'.format(tiny) }} {{ '{:02d}:{:02d}'.format(5, 7) }}
{{ [[1, 2], [3]]|sum(start=[]) }}
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.capitalize() }} {{ 'ß'.upper() }}
{{ padded.strip() }}| {{ padded.lstrip() }}| {{ padded.rstrip() }}| {{ 'xxaxx'.strip('x') }} {{ 'abcab'.lstrip('ab') }} {{ 'abcab'.rstrip('ba') }} {{ padded.strip(none) }}
{{ '\x1c a\x1f\x85'.strip()|tojson }} {{ '\u200b a\ufeff'.strip()|tojson }} {{ '\x1ca b'.split()|tojson }}
{{ s.split() }} {{ s.split(', ') }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b '.split() }} {{ ' a b '.split(' ') }} {{ ' a b c '.split(none, 1) }} {{ 'a b c'.split(maxsplit=1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'aXbX'.split('X') }} {{ 'a,b'.split(sep=',') }}
{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ 'a\x0bb\x0cc\x1cd\x85e\u2028f'.splitlines() }} {{ ''.splitlines() }} {{ 'a\n'.splitlines() }}
{{ s.replace('l', '') }} {{ s.replace('l', 'L', 1) }} {{ 'aaa'.replace('', '-') }} {{ s.startswith('He') }} {{ s.startswith(('x', 'H')) }} {{ s.endswith('ld') }} {{ s.endswith(('x', 'd')) }}
{{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ s.index('W') }} {{ s.count('l') }} {{ unicode.find('é') }}
{{ s.index('zz') }}
{{ s.partition(', ') }} {{ s.rpartition('o') }} {{ 'x'.partition('q') }} {{ s.removeprefix('He') }} {{ s.removesuffix('ld') }} {{ s.removeprefix('zz') }}
{{ '5'.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ ''.isspace() }} {{ 'ab'.islower() }} {{ 'AB'.isupper() }} {{ 'é'.isascii() }}
{{ '-'.join(words) }} {{ ', '.join(dict) }} {{ ''.join(['a']) }} {{ '-'.join('abc') }} {{ '-'.join(words|map('upper')) }}
{{ 'A'.__class__ is defined }}
{{ dict.get('a') }} {{ dict.get('q') }} {{ dict.get('q', 1) }} {{ dict.keys()|list }} {{ dict.values()|list }} {{ dict.items()|list }} {{ dict.copy() }}
{{ nested.items is defined }} {{ nested['items'] }} {{ nested.get('items') }}
{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %} {% for k in dict %}{{ k }}{% endfor %} {% for k, v in dict|items %}{{ k }}{% endfor %}
{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}
{% set d = {} %}{% set _ = d.update({'a': 1}) %}{{ d }}
{{ list.pop() }}
{{ list.index(1) }} {{ list.count(1) }} {{ [1, 2].copy() }}
{{ list.index(99) }}
{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[:-1] }} {{ s[::2] }} {{ s[::-1] }} {{ unicode[0:2] }} {{ s[100:] }}|
{{ s[100] is defined }} {{ s[100] }}|
{{ list[1:] }} {{ list[:-1] }} {{ list[::-1] }} {{ list[::2] }} {{ list[5:] }} {{ (1, 2, 3)[1:] }} {{ range(10)[2:4]|list }} {{ list[-2:] }} {{ list[none:1] }}
{{ dict['a'] }} {{ dict.a }} {{ dict.b + 1 }} {{ nested.a.b[1].c }} {{ nested['a']['b'][0] }} {{ rows[0].name }} {{ rows.0.name }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 + 2.0 }} {{ 3 - 5 }} {{ 2 * 3.5 }} {{ 10 ** 20 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 'a' * 3 }} {{ 3 * 'a' }} {{ [1] * 2 }} {{ [1] + [2] }} {{ 'a' + 'b' }} {{ (1,) + (2,) }} {{ -n }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ 'a' + none }}
{{ none + 'a' }}
{{ 'a' + undefined_name }}
{{ [] + none }}
{{ 'a' ~ 1 ~ none ~ [1] }} {{ 1 ~ 2 }}
{{ true + true }} {{ true + 1 }} {{ 5 * false }} {{ 1 == 1.0 }} {{ 1 == true }} {{ 0 == false }} {{ '1' == 1 }} {{ none == false }} {{ [] == [] }} {{ {} == {} }} {{ 'a' < 'b' }} {{ [1] < [2] }} {{ 1 < 2 < 3 }} {{ 3 > 2 > 1 }} {{ 1 < 3 < 2 }}
{{ 'a' in 'abc' }} {{ 1 in list }} {{ 'a' in dict }} {{ 'z' not in dict }} {{ '' in '' }} {{ 9 in list }} {{ 'x' in undefined_name }} {{ 1 in (1, 2) }}
{{ 'a' in none }}
{{ not empty }} {{ not 'x' }} {{ empty or 'd' }} {{ 'a' and 'b' }} {{ none or 0 or 'x' }} {{ 1 and 0 }} {{ '' and 1 }}| {{ (none and 1) is none }} {{ undefined_name or 'u' }}
{{ 'a' if yes else 'b' }} {{ 'a' if no }}| {{ ('a' if no) is defined }} {{ 'x' if undefined_name else 'y' }}
{{ s is string }} {{ n is number }} {{ f is number }} {{ tiny is number }} {{ yes is number }} {{ none is none }} {{ n is integer }} {{ yes is integer }} {{ f is float }} {{ tiny is float }} {{ whole is integer }} {{ yes is boolean }} {{ list is sequence }} {{ s is sequence }} {{ dict is sequence }} {{ dict is mapping }} {{ list is mapping }} {{ n is sequence }} {{ none is sequence }} {{ undefined_name is sequence }}
{{ list is iterable }} {{ s is iterable }} {{ dict is iterable }} {{ n is iterable }} {{ none is iterable }} {{ undefined_name is iterable }} {{ range(2) is iterable }} {{ (list|map('string')) is iterable }} {{ yes is iterable }}
{{ s is defined }} {{ none is defined }} {{ undefined_name is defined }} {{ undefined_name is undefined }} {{ undefined_name is none }} {{ undefined_name is string }} {{ undefined_name is not none }}
{{ n is odd }} {{ n is even }} {{ n is divisibleby(5) }} {{ n is divisibleby 5 }} {{ n is eq 5 }} {{ n is equalto(5) }} {{ n is gt 4 }} {{ n is ge(5) }} {{ n is lt 6 }} {{ n is le 5 }} {{ n is ne 4 }} {{ n is in [5] }} {{ n is not in [5] }} {{ n is sameas 5 }} {{ none is sameas none }} {{ yes is sameas true }} {{ yes is true }} {{ no is false }} {{ n is true }}
{{ s is upper }} {{ 'AB' is upper }} {{ 'ab' is lower }} {{ '<'|safe is escaped }} {{ 'tojson' is filter }} {{ 'odd' is test }} {{ 'nope' is filter }}
{{ s is nonsense }}
{{ s|nonsense }}
{{ nonsense(1) }}
{{ s.nonsense() }}
{{ dict(a=1, b=2) }} {{ dict([('a', 1)]) }}
{{ namespace(a=1).a }} {% set ns = namespace(x=1, y='b') %}{% set ns.x = ns.x + 1 %}{{ ns.x }}{{ ns.y }} {{ ns.z is defined }} {% set ns.z = [] %}{{ ns.z }}
{% set ns = namespace() %}{% set ns.l = [] %}{% for i in list %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l }}
{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %y %p %I') }} {{ strftime_now is defined }}
{{ raise_exception('It failed: é\n' ~ s) }}
{{ raise_exception(n) }}
{{ raise_exception() }}
{% for i in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for i in list %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{{ loop.previtem is defined }}{{ loop.cycle('a', 'b') }}{{ loop.changed(i > 1) }}{% endfor %}
{% for i in list if i > 1 %}{{ loop.index }}{{ i }}{% else %}none{% endfor %} {% for i in [] %}x{% else %}else{% endfor %} {% for i in undefined_name %}x{% else %}else{% endfor %}
{% for i in n %}x{% endfor %}
{% for c in 'aé😀' %}{{ c }}-{% endfor %} {% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %} {% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1,)] %}x{% endfor %}
{% for r in [{'k': [{'k': []}]}] recursive %}<{{ r.k|length }}{{ loop(r.k) }}>{% endfor %}
{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %} {% for i in range(3) %}{% for j in range(3) %}{% if j == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}
{% set x = 1 %}{% for i in list %}{% set x = i %}{% endfor %}{{ x }} {% if yes %}{% set x = 9 %}{% endif %}{{ x }} {% set a, b = 1, 2 %}{{ a }}{{ b }} {% set a, b = [3, 4] %}{{ a }}
{% set x %}a{{ n }} b {% endset %}[{{ x }}] {% set x | upper %}abc{% endset %}{{ x }} {% set x %}<&{% endset %}{{ x + '<' }}
{% with a=1, b=2 %}{{ a }}{{ b }}{% endwith %} {{ a is defined }} {% filter upper %}abc{{ s }}{% endfilter %}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(q=2) }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}in{{ n }}{% endcall %} {% macro each() %}{% for i in list %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(i) each() %}[{{ i }}]{% endcall %}
{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }} {{ f(2)|length }} {{ f(2) + 'x' }} {{ (f(1)).strip() }} {{ f(2) is string }} {{ f(1) == '1' }}
{% macro j(x) %}{{ x|tojson }}{% endmacro %}{{ j(html) }} {{ j(html) + '<' }} {{ [j('a')] }} {{ j(1)|int + 1 }}
{% if x is defined %}{% elif yes and not no %}elif{% else %}else{% endif %} {% if list %}t{% endif %}{% if nothing %}f{% endif %}{% if empty_dict %}f{% endif %}{% if zero %}f{% endif %}{% if f %}t{% endif %}
{#- comment -#} a {# b #} c {{- ' d' -}} e {%- if true -%} f {%- endif -%} g {% raw %}{{ x }}{% endraw %} {%+ if true %}h{% endif +%} i
{% generation %}a{{ n }}{% endgeneration %} {%- generation -%} b {%- endgeneration %} {% for i in list %}{% generation %}{% set q = i %}{{ q }}{% endgeneration %}{% endfor %}{{ q is defined }}
{{ '{% generation %}' }}{% raw %}{% generation %}{% endraw %} {% set generation = 5 %}{{ generation }} {# {% generation %} #}
{% block b %}in{{ n }}{% endblock %} {{ self.b() }}
{% do list.append(1) %}
{% include 'x' %}
{% extends 'x' %}
{% import 'x' as y %}
{% from 'x' import y %}
{% autoescape true %}{{ html }}{{ html|safe }}{% endautoescape %}
{% trans %}x{% endtrans %}
{% debug %}
{% nonsense %}
{{ s | upper | lower }} {{ (s|upper)[0] }} {{ s|upper ~ 'x' }} {{ n + 2|abs }} {{ -5|abs }} {{ 'a' 'b' }} {{ 1_000 }} {{ 0x1f }} {{ 1e3 }} {{ 1.5e-3 }} {{ 0b11 }} {{ 0o17 }}
{{ "a'b" }} {{ 'new\
line' }}
{{ [1, 2, ] }} {{ {'a': 1, } }} {{ {'a': 1, 'a': 2} }} {{ {n: s, 1: 2, none: 3} }} {{ [[1], [2]][1][0] }} {{ {'a': {'b': 1}}.a.b }} {{ (1, 2)[0] }} {{ (n) }}
{{ dict.a is string and dict.b is number or false }} {{ not (1 == 2) }} {{ not 1 == 2 }} {{ 1 if 2 if 0 else 3 else 4 }} {{ s.split(', ')[1].lower().strip('w')|upper }}
{{ loop is defined }} {{ caller is defined }} {{ messages|length }} {{ tools is none }} {{ documents is none }} {{ add_generation_prompt }} {{ bos_token }}
{{ messages is defined and messages[0] is defined }} {{ messages[0]['role'] is defined }} {{ (messages|first) is defined }}
{{ [1, 2, 3]|map('abs')|sum }} {{ ['a', 'b']|map('upper')|first }} {{ list|map('float')|list }} {{ rows|map(attribute='name')|map('upper')|join(' ') }} {{ [{'a': {'b': 1}}]|map(attribute='a.b')|list }}
{{ 5 is number and 5 is not string }} {{ 'a' is in 'abc' }} {{ 'a' is not in 'b' }}
{{ ns2 is defined }}{% if false %}{% set ns2 = 1 %}{% endif %}{{ ns2 is defined }} {{ 'x'.join([]) }}| {{ [] is sameas [] }}
{{ tiny > 0 }} {{ tiny == tiny }} {{ huge|int }} {{ tiny|float }} {{ [tiny, huge]|max }} {{ not tiny }} {{ tiny and 1 }}
{{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e22 }} {{ 123456789.123 }} {{ 1.0 }} {{ 100000.0 * 100000000000.0 }} {{ 0.1 + 0.2 }} {{ 1 / 3 }} {{ 1e300 * 1e10 }} {{ -0.0 }}
{{ range(3)|list }} {{ range(1, 3)|list }} {{ range(5, 0, -2)|list }} {{ range(3)|length }} {{ range(0)|list }} {% for i in range(3) %}{{ i }}{% endfor %}
{% macro m(a, b='d', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(a=1, c=3) }} {{ m() }} {{ m.name }}
{{ 'a\u00e9\x41\t\\\'\"\101' }}
""".strip("\n")

# What we refuse, and what the error has to say.
UNSUPPORTED = {
    "{{ {'b': 1, 'A': 2}|dictsort(true) }}": "dictsort(true)",
    "{{ ('%s'|safe) % '<' }}": "tried to use % operator",
    "{{ '%s is %d' % ('x', 5) }}": "tried to use % operator",
    "{{ '%.3f' % f }}": "tried to use % operator",
    "{{ '%r' % 'x' }}": "tried to use % operator",
    "{{ '%s %s' % ('a', [1]) }}": "tried to use % operator",
    "{{ '%(k)s' % {'k': 'v'} }}": "tried to use % operator",
    "{{ '{!r}'.format('x') }}": "format()",
    "{{ '{:%}'.format(0.5) }}": "format()",
    "{{ s|wordcount }}": "filter wordcount is unknown",
    "{{ s|truncate(5) }}": "filter truncate is unknown",
    "{{ s|urlencode }}": "filter urlencode is unknown",
    "{{ list|pprint }}": "filter pprint is unknown",
    "{{ dict|attr('a') }}": "filter attr is unknown",
    "{{ s.swapcase() }}": "no method named swapcase",
    "{{ s.startswith('e', 1) }}": "startswith()",
    "{{ s.find('o', 5) }}": "find()",
    "{{ '5'.isdecimal() }}": "no method named isdecimal",
    "{{ 'x'.center(5, '*') }}": "no method named center",
    "{{ 'x'.ljust(3) }}": "no method named ljust",
    "{{ 'x'.rjust(3, '.') }}": "no method named rjust",
    "{{ '7'.zfill(3) }}": "no method named zfill",
    "{{ +n }}": "unexpected `+`",
    "{{ range is callable }}": "callable is unknown",
    "{{ s is callable }}": "callable is unknown",
    "{{ namespace({'a': 1}, b=2).a }}": "namespace({'a': 1}, b=2)",
    "{{ cycler('a', 'b').next() }}": "cycler is unknown",
    "{% set j = joiner(', ') %}{% for i in list %}{{ j() }}{{ i }}{% endfor %}": (
        "joiner is unknown"
    ),
    "{% macro m(a) %}{{ varargs }}{% endmacro %}{{ m(1, 2) }}": "m(1, 2)",
    "{{ '%d%%' % 5 }}": "tried to use % operator",
    "{{ '%s' % tiny }}": "tried to use % operator",
    "{{ f + tiny }}": "tried to use + operator",
    "{{ tiny * 2 }}": "tried to use * operator",
    "{{ tiny|round(3) }}": "round(3)",
    "{{ huge / 2 }}": "tried to use / operator",
    "{{ -tiny }}": "-tiny",
}

# What we print otherwise, or where only Jinja fails, and why.
DIFFERENT = {
    "{{ list|map('string')|tojson }}": "Jinja fails, we do not",
    "{{ dict.keys()|tojson }}": "Jinja fails, we do not",
    "{{ range(3)|tojson }}": "Jinja fails, we do not",
    "{{ namespace(a=1)|tojson }}": "Jinja fails, we do not",
    "{{ none|list }}": "Jinja fails, we do not",
    "{{ '<b>'|safe + '<i>' }}": "Jinja escapes what is added to a safe string",
    "{{ '<b>' + '<i>'|safe }}": "Jinja escapes what is added to a safe string",
    '{{ \'x\'|safe + \'"\' + "\'" + \'&\' }}': (
        "Jinja escapes what is added to a safe string"
    ),
    "{{ ('a'|safe).replace('a', '<') }}": (
        "Jinja escapes what is added to a safe string"
    ),
    "{{ '½'.isdigit() }}": "½ is numeric to us",
    "{{ '-'.join([1, 2]) }}": "Jinja fails, we do not",
    "{{ dict.keys() }}": "prints as the list",
    "{{ dict.values() }}": "prints as the list",
    "{{ dict.items() }}": "prints as the list",
    "{{ 1 < 'a' }}": "Jinja fails, we do not",
    "{{ none < 1 }}": "Jinja fails, we do not",
    "{{ 1 in 'abc' }}": "Jinja fails, we do not",
    "{{ (list|map('string')) is sequence }}": "map() makes a list",
    "{{ range(3) }}": "prints as the list",
    "{% for i in none %}x{% endfor %}": "Jinja fails, we do not",
    "{% macro m(a) %}{% endmacro %}{{ m.arguments }}": "prints as a list",
    "{{ '\\N{BULLET}' }}": "names of characters are not known",
    "{{ self is defined }}": "there are no blocks to call",
    "{{ s is string is defined }}": "Jinja fails, we do not",
    "{{ tiny < 1 }}": "a number that prints with an exponent can't be compared",
    "{{ [tiny, 1]|sort }}": (
        "a number that prints with an exponent can't be compared"
    ),
}


def features():
    """Of a line with expressions only, each is one; else the whole line is."""
    for line in FEATURES.split("\n"):
        if "{%" in line or "{#" in line:
            yield line
        else:
            yield from re.findall(r"\{\{.*?\}\}(?=\s|\||$|\{)", line)
    yield from UNSUPPORTED
    yield from DIFFERENT

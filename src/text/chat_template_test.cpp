#include "text/chat_template.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class FixedClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return {};
  }
  std::chrono::milliseconds since_epoch() const override {
    return std::chrono::milliseconds(1785499200999); // noon, 2026-07-31, UTC
  }
};

std::shared_ptr<const ChatTemplate> compile(std::string_view source) {
  static const FixedClock kClock;
  auto compiled = ChatTemplate::compile(source, "chat_template.jinja", kClock);
  EXPECT_TRUE(compiled.is_ok()) << compiled.status().message();
  return compiled.value();
}

std::string render(std::string_view source, std::string_view context = "{}") {
  auto text = compile(source)->render(context);
  EXPECT_TRUE(text.is_ok()) << text.status().message();
  return text.is_ok() ? *text : std::string();
}

std::string render_error(
    std::string_view source,
    std::string_view context = "{}") {
  auto text = compile(source)->render(context);
  EXPECT_FALSE(text.is_ok()) << *text;
  Status status = text.status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(status.reason(), "template_error");
  return status.message();
}

std::string compile_error(std::string_view source) {
  auto compiled =
      ChatTemplate::compile(source, "m/chat_template.jinja", SystemClock());
  EXPECT_FALSE(compiled.is_ok());
  Status status = compiled.status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_THAT(status.message(), StartsWith("m/chat_template.jinja: "));
  EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
  return status.message();
}

TEST(ChatTemplate, RendersChatMl) {
  EXPECT_EQ(
      render(
          kTinyChatTemplate,
          R"({"messages": [{"role": "user", "content": "Hi <b>&"}],
              "add_generation_prompt": true})"),
      "<|im_start|>user\nHi <b>&<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, BlocksAreTrimmed) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
}

TEST(ChatTemplate, UndefinedIsEmptyAndItsAttributesAreErrors) {
  EXPECT_EQ(render("[{{ tools }}]{% for t in tools %}x{% endfor %}"), "[]");
  EXPECT_EQ(render("{{ 'y' if tools is not defined }}"), "y");
  EXPECT_THAT(
      render_error("a\n{{ tools.name.first }}"),
      StartsWith("chat_template.jinja: line 2: undefined value"));
}

TEST(ChatTemplate, ToJsonIsPythons) {
  const char* context = R"({"x": {"z": 1, "a": [true, null, 1.0, 1e30, -0.5e-7],
      "html": "<&'>", "text": "\u00e9\n\"\u0001", "none": {}, "list": []}})";
  EXPECT_EQ(
      render("{{ x|tojson }}", context),
      R"({"z": 1, "a": [true, null, 1.0, 1e+30, -5e-08], )"
      R"("html": "<&'>", "text": "é\n\"\u0001", "none": {}, "list": []})");
  EXPECT_EQ(
      render("{{ x|tojson(indent=2) }}", R"({"x": {"b": [1, {}], "a": 2}})"),
      "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": 2\n}");
  EXPECT_EQ(
      render(
          "{{ x|tojson(separators=(',', ':'), sort_keys=true) }}",
          R"({"x": {"b": [1, 2], "a": 2}})"),
      R"({"a":2,"b":[1,2]})");
  EXPECT_EQ(
      render("{{ x|tojson(ensure_ascii=true) }}", R"({"x": "é😀"})"),
      R"("\u00e9\ud83d\ude00")");
  EXPECT_EQ(
      render("{{ x|tojson(false, 1) }}", R"({"x": ["é"]})"), "[\n \"é\"\n]");
  EXPECT_THAT(
      render_error("{{ nothing|tojson }}"),
      HasSubstr("undefined is not JSON serializable"));
}

TEST(ChatTemplate, KeysKeepTheirOrder) {
  EXPECT_EQ(
      render(
          "{% for k, v in x.items() %}{{ k }}{{ v }} {% endfor %}"
          "{% for k in x %}{{ k }}{% endfor %}",
          R"({"x": {"zeta": 1, "items": 2, "alpha": 3}})"),
      "zeta1 items2 alpha3 zetaitemsalpha");
}

TEST(ChatTemplate, LoopControlsNamespacesAndMacros) {
  EXPECT_EQ(
      render("{% set ns = namespace(n=0) %}"
             "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}"
             "{% for i in range(10) %}"
             "{% if i == 1 %}{% continue %}{% endif %}"
             "{% if i == 4 %}{% break %}{% endif %}"
             "{% set ns.n = ns.n + i %}{{ twice(i) }}"
             "{% endfor %}={{ ns.n }}"),
      "002233=5");
}

TEST(ChatTemplate, PythonMethods) {
  EXPECT_EQ(
      render("{{ ' a-b '.strip().split('-')[-1] }}"
             "{{ 'x'.upper() }}{{ 'abc'.startswith('ab') }}"
             "{{ 'a</t>b'.split('</t>')[0].rstrip('\\n') }}"
             "{{ {'k': 1}.get('k') }}{{ {'k': 1}.get('q', 'd') }}"
             "{{ 'abc'[::-1] }}{{ ['a', 'b']|join('+') }}{{ [5, 3]|min }}"),
      "bXTruea1dcbaa+b3");
}

TEST(ChatTemplate, ValuesPrintAsPythonDoes) {
  EXPECT_EQ(
      render(
          "{{ x.t }} {{ x.n }} {{ x.f }} {{ x.l }} {{ x.t|string }}",
          R"({"x": {"t": true, "n": null, "f": 1.0, "l": ["a", 1]}})"),
      "True None 1.0 ['a', 1] True");
}

TEST(ChatTemplate, NumbersPrintAsPythonDoes) {
  const char* context =
      R"({"x": {"tiny": 1e-7, "huge": 1e20, "f": 0.0001, "i": 10}})";
  EXPECT_EQ(
      render("{{ x.tiny }} {{ x.huge ~ '' }} {{ x.f }} {{ x }}", context),
      "1e-07 1e+20 0.0001 "
      "{'tiny': 1e-07, 'huge': 1e+20, 'f': 0.0001, 'i': 10}");
  EXPECT_EQ(
      render(
          "{{ x.tiny|tojson }} {{ 'x' + x.huge|string }} {{ [x.tiny]|join }} "
          "{{ x.tiny is number and x.tiny is float }} {{ x.huge|int }}",
          context),
      "1e-07 x1e+20 1e-07 True 100000000000000000000");
  EXPECT_EQ(render("{{ 1e16 }} {{ [0.00001] }}"), "1e+16 [1e-05]");
  EXPECT_THAT(render_error("{{ x.tiny * 2 }}", context), HasSubstr("x.tiny"));
}

TEST(ChatTemplate, StringsInListsPrintAsPythonDoes) {
  EXPECT_EQ(
      render(
          "{{ x }} {{ 'q' ~ x }} {{ ('a', 1) }} {{ ('a',) }} {{ [none] }}",
          R"({"x": ["it's", "\"'", "\n\\\u007f", "é\u200b\u00a0", "e\u0301"]})"),
      R"(["it's", '"\'', '\n\\\x7f', 'é\u200b\xa0', 'e)"
      "\u0301"
      R"('] q["it's", '"\'', '\n\\\x7f', 'é\u200b\xa0', 'e)"
      "\u0301"
      R"('] ('a', 1) ('a',) [None])");
}

TEST(ChatTemplate, TheMethodsOfADictionaryHideItsKeys) {
  const char* context = R"({"x": {"items": {"type": "string"}, "a": 1}})";
  EXPECT_EQ(
      render(
          "{{ x.items.type }}|{{ x['items'].type }}|{{ x.get is defined }}|"
          "{{ x.items()|length }}|{{ x.a }}",
          context),
      "|string|True|2|1");
}

TEST(ChatTemplate, NoneIsNotIterableAndTextIsASequence) {
  EXPECT_EQ(
      render(
          "{{ x is iterable }}{{ x is sequence }} "
          "{{ '' is sequence }}{{ {} is sequence }}{{ 1 is iterable }} "
          "{{ y is iterable }}",
          R"({"x": null})"),
      "FalseFalse TrueTrueFalse True");
}

TEST(ChatTemplate, NoneIsRenderedWhereATemplateGoesThroughIt) {
  EXPECT_EQ(render("a{% for t in x %}b{% endfor %}", R"({"x": null})"), "a");
}

TEST(ChatTemplate, WhiteSpaceIsWhatPythonTakesForIt) {
  EXPECT_EQ(
      render(
          "{{ x|trim }}|{{ x.strip() }}|{{ x.split() }}|{{ none|trim }}",
          R"({"x": "\u001c\u0085 a\u001fb\u3000\n"})"),
      "a\x1f"
      "b|a\x1f"
      "b|['a', 'b']|None");
  EXPECT_EQ(
      render("{{ x.splitlines() }}", R"({"x": "a\r\nb\u2028c\u000bd\n"})"),
      "['a', 'b', 'c', 'd']");
  EXPECT_EQ(
      render(
          "{{ x|indent(2) }}|{{ x|indent('> ', first=true, blank=true) }}",
          R"({"x": "a\r\n\nb"})"),
      "a\n\n  b|> a\n> \n> b");
}

TEST(ChatTemplate, FiltersTakeTheirArgumentsByName) {
  EXPECT_EQ(
      render("{{ x|default(default_value='d') }}"
             "{{ ''|default('e', boolean=true) }}"
             "{{ 'x'|int }}{{ 'x'|int(default=7) }}{{ '1f'|int(base=16) }}"
             "{{ 'x'|float }}{{ none|float(2.5) }}"),
      "de07310.02.5");
}

TEST(ChatTemplate, TextIsEscapedAsJinjaDoes) {
  EXPECT_EQ(
      render("{{ x|e }}{{ x|e|e }}{{ x|safe }}", R"({"x": "<'/\">"})"),
      "&lt;&#39;/&#34;&gt;&lt;&#39;/&#34;&gt;<'/\">");
  EXPECT_EQ(
      render(
          "{% autoescape true %}{{ x }}{{ x|safe }}{% endautoescape %}{{ x }}",
          R"({"x": "<'"})"),
      "&lt;&#39;<'<'");
}

TEST(ChatTemplate, MethodsTakeTheirArgumentsByName) {
  EXPECT_EQ(
      render("{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a,b'.split(sep=',') }}"
             "{{ ' a  b c'.split(maxsplit=1) }}{{ 'a b'.rsplit() }}"),
      "['a,b', 'c']['a', 'b']['a', 'b c']['a', 'b']");
  EXPECT_EQ(
      render("{{ 'a:b:c'.partition(':') }}{{ 'a:b:c'.rpartition(':') }}"
             "{{ 'ab'.removeprefix('a') }}{{ 'ab'.removesuffix('b') }}"
             "{{ 'ab'.index('b') }}{{ [1, 2].index(2) }}{{ {'a': 1}.copy() }}"
             "{{ \"they're\".title() }}"),
      "('a', ':', 'b:c')('a:b', ':', 'c')ba11{'a': 1}They'Re");
}

TEST(ChatTemplate, ErrorsShowWhatOfTheTemplateFailed) {
  EXPECT_THAT(render_error("{{ '%s' % 5 }}"), HasSubstr("in `'%s' % 5`"));
  EXPECT_THAT(
      render_error("{{ 'a'.startswith('a', 1) }}"), HasSubstr("startswith()"));
  EXPECT_THAT(
      render_error("{{ x|dictsort(true) }}", R"({"x": {}})"),
      HasSubstr("dictsort(true)"));
}

TEST(ChatTemplate, StrftimeNowReadsTheClock) {
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y') }}"), "31 Jul 2026");
  EXPECT_EQ(
      render("{% macro today() %}{{ strftime_now('%Y-%m') }}{% endmacro %}"
             "{{ today() }}{{ strftime_now('') }}"),
      "2026-07");
  EXPECT_THAT(
      render_error("{{ strftime_now('%Y' * 2000) }}"),
      HasSubstr("strftime_now"));
}

TEST(ChatTemplate, GenerationTagsRenderAsTheirContent) {
  EXPECT_EQ(
      render("{% for x in [1, 2] %}{%- generation -%} a{{ x }} "
             "{%- endgeneration -%}{% endfor %}"
             "{% if add_generation_prompt is defined %}no{% endif %}"),
      "a1a2");
  EXPECT_THAT(compile_error("\n{% generation %}"), HasSubstr("line 2"));
}

TEST(ChatTemplate, GenerationTagsInStringsAndCommentsStay) {
  EXPECT_EQ(
      render("{{ '{% generation %}}}' }}{% raw %}{% generation %}{% endraw %}"
             "{# {% generation %} #}{% set generation = 5 %}{{ generation }}"
             "{% generation %}{{ '%}' }}{% endgeneration %}"),
      "{% generation %}}}{% generation %}5%}");
  EXPECT_EQ(
      render("{% raw %}{% it's {% endraw %}"
             "{% generation %}x{% endgeneration %}"),
      "{% it's x");
}

TEST(ChatTemplate, RaiseExceptionGivesTheTemplatesOwnWords) {
  EXPECT_EQ(
      render_error("{{ raise_exception('Roles must alternate: é!') }}"),
      "Roles must alternate: é!");
  EXPECT_EQ(
      render_error(
          "{% macro check() %}{{ raise_exception('No ' ~ name) }}{% endmacro %}"
          "{% set text %}{{ check() }}{% endset %}",
          R"({"name": "tools"})"),
      "No tools");
}

TEST(ChatTemplate, WhatIsRaisedIsOneLineAndNotLong) {
  EXPECT_EQ(
      render_error("{{ raise_exception('Roles must\n\talternate\n') }}"),
      "Roles must alternate");
  EXPECT_EQ(render_error("{{ raise_exception('') }}"), "no reason was given");
  EXPECT_EQ(render_error("{{ raise_exception('\n') }}"), "no reason was given");
  const std::string all = render_error(
      "{{ raise_exception(text) }}",
      R"({"text": "a)" + std::string(2000, '-') + R"("})");
  EXPECT_EQ(all, "a" + std::string(999, '-') + "...");
  std::string accents;
  for (int i = 0; i < 1000; ++i) {
    accents += "\u00e9";
  }
  const std::string cut = render_error(
      "{{ raise_exception(text) }}", R"({"text": "a)" + accents + R"("})");
  EXPECT_EQ(cut, "a" + accents.substr(0, 998) + "...");
}

TEST(ChatTemplate, ATemplateThatTheEnginePanicsOnIsCorruption) {
  EXPECT_THAT(
      compile_error("{% import 'z' as z|sort %}"),
      AllOf(HasSubstr("minijinja"), Not(HasSubstr("registry"))));
}

TEST(ChatTemplate, SyntaxErrorsNameTheFileAndTheLine) {
  EXPECT_THAT(
      compile_error("a\nb\n{% if x %}"),
      StartsWith("m/chat_template.jinja: line 3: syntax error"));
  EXPECT_THAT(compile_error("{% trans %}x{% endtrans %}"), HasSubstr("trans"));
  compile_error("{{ ");
  compile_error("{% for %}");
  compile_error(std::string(100000, '(').insert(0, "{{ "));
  EXPECT_THAT(compile_error("a\xFF"), HasSubstr("UTF-8"));
}

TEST(ChatTemplate, RenderErrorsNameTheFileAndTheLineInOneLine) {
  for (const char* source :
       {"\n{{ 'a' + 1 }}",
        "\n{{ 'a'|nonsense }}",
        "\n{{ nonsense() }}",
        "\n{{ 'a'.nonsense() }}",
        "\n{{ 1 // 0 }}",
        "\n{% include 'other' %}"}) {
    std::string message = render_error(source);
    EXPECT_THAT(message, StartsWith("chat_template.jinja: line 2: "));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(ChatTemplate, VariablesThatAreNotAJsonObjectAreRefused) {
  render_error("a", "");
  render_error("a", "[]");
  render_error("a", "{\"x\": \"\xFF\"}");
  EXPECT_THAT(
      render_error("a", "{\"x\": " + std::string(100000, '[')),
      HasSubstr("recursion"));
}

// --- Hostile templates -----------------------------------------------------

TEST(ChatTemplate, ATemplateThatDoesTooMuchIsStopped) {
  const char* sources[] = {
      // Runs for ever.
      "{% for a in range(99999) %}{% for b in range(99999) %}"
      "{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
      // Grows for ever.
      "{% set ns = namespace(s='x') %}"
      "{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
      "{{ ns.s|length }}",
      "{% set ns = namespace(s='x') %}"
      "{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{{ 'x' * 99999999999 }}",
      // Holds itself twice at each level: small, but not as text.
      "{% set ns = namespace(l=['x']) %}"
      "{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"
      "{{ ns.l|tojson }}",
      "{% set ns = namespace(l=['x']) %}"
      "{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"
      "{{ ns.l }}",
      "{% set ns = namespace(l={'x': 1}) %}"
      "{% for i in range(50) %}{% set ns.l = {1: ns.l, 2: ns.l} %}{% endfor %}"
      "{% set text %}{{ ns.l }}{% endset %}",
      "{% set ns = namespace(l=['x']) %}"
      "{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"
      "{% autoescape true %}{{ ns.l }}{% endautoescape %}",
      "{% set ns = namespace(l=['x']) %}"
      "{% for i in range(50) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}"
      "{{ ns.l|trim }}",
      // Grows many times over in one step.
      "{{ ('a ' * 9999999).split() }}",
      "{{ ('\n' * 9999999).splitlines() }}",
      "{{ ('\n' * 9999999)|indent(999, blank=true) }}",
  };
  for (const char* source : sources) {
    SCOPED_TRACE(source);
    EXPECT_THAT(render_error(source), StartsWith("chat_template.jinja: "));
  }
}

std::string context_of_bytes(size_t size) {
  return R"({"x": ")" + std::string(size, 'a') + R"("})";
}

TEST(ChatTemplate, TheBudgetOfWorkGrowsWithTheVariablesUpToALimit) {
  const std::string work =
      "{% for a in range(1000) %}{% for b in range(1000) %}"
      "{% if a == b %}{% endif %}{% endfor %}{% endfor %}";
  EXPECT_THAT(render_error(work), HasSubstr("too much work"));
  EXPECT_EQ(render(work, context_of_bytes(1 << 19).c_str()), "");
  const std::string forever =
      "{% for c in range(99999) %}" + work + "{% endfor %}";
  EXPECT_THAT(render_error(forever), HasSubstr("too much work"));
  EXPECT_THAT(
      render_error(forever, context_of_bytes(4 << 20).c_str()),
      HasSubstr("too much work"));
}

TEST(ChatTemplate, RecursionIsStopped) {
  std::string message =
      render_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
  EXPECT_THAT(message, HasSubstr("recursion limit exceeded"));
}

TEST(ChatTemplate, ToJsonRefusesValuesNestedTooDeeply) {
  EXPECT_THAT(
      render_error(
          "{% set ns = namespace(l=[]) %}"
          "{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}"
          "{{ ns.l|tojson }}"),
      HasSubstr("nested too deeply"));
}

// A template that puts a value `depth` deep into itself, `count` times.
std::string nesting(
    const std::string& open,
    const std::string& close,
    int depth,
    int count) {
  std::string nested = "ns.x";
  for (int i = 0; i < depth; ++i) {
    nested = open + nested + close;
  }
  return "{% set ns = namespace(x=0) %}{% for i in range(" +
      std::to_string(count) + ") %}{% set ns.x = " + nested + " %}{% endfor %}";
}

// Printing and freeing are recursive.
TEST(ChatTemplate, ValuesNestedAsDeeplyAsTheBudgetAllowsArePrintedAndFreed) {
  for (const char* print : {"{{ ns.x }}", "{{ ns.x ~ '' }}"}) {
    const std::string list = nesting("[", "]", 40, 20000) + print;
    EXPECT_EQ(render(list).size(), 2 * 40 * 20000 + 1u);
    const std::string object = nesting("{1:", "}", 30, 12000) + print;
    EXPECT_EQ(render(object).size(), 5 * 30 * 12000 + 1u);
  }
  // More than the stack of a short conversation holds.
  const std::string longer = nesting("[", "]", 40, 60000) + "{{ ns.x ~ '' }}";
  EXPECT_EQ(
      render(longer, context_of_bytes(1 << 17).c_str()).size(),
      2 * 40 * 60000 + 1u);
  for (const std::string& forever :
       {nesting("[", "]", 40, 90000), nesting("{1:", "}", 30, 90000)}) {
    EXPECT_THAT(render_error(forever), HasSubstr("too much work"));
  }
}

TEST(ChatTemplate, ManyThreadsShareOne) {
  auto shared = compile("{{ x|tojson }}{{ strftime_now('%Y') }}");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&shared, t] {
      std::string n = std::to_string(t);
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(*shared->render("{\"x\": " + n + "}"), n + "2026");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

} // namespace
} // namespace ingle

#include "api/resume_hints.h"

#include <gtest/gtest.h>

#include "api/prompt.h"
#include "api/testing/fake_served_model.h"
#include "base/clock.h"

namespace ingle {
namespace {

// As many models write: what was thought is dropped from earlier turns.
constexpr char kTemplate[] =
    "{% for m in messages %}"
    "{% if m.role == 'tool' and loop.first %}{{ raise_exception('no') }}"
    "{% endif %}"
    "[{{ m.role }}]{{ m.content.split('|')[-1] }};"
    "{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

class ResumeHints : public testing::Test {
 protected:
  void SetUp() override {
    auto compiled = ChatTemplate::compile(kTemplate, "test", clock_);
    ASSERT_TRUE(compiled.is_ok()) << compiled.status().message();
    model_.chat_template = *compiled;
    model_.forgets = true;
    model_.context_length = 4096;
  }

  GenerationRequest generation(
      const std::string& messages,
      const std::string& fields = "") {
    const auto request = parse_chat_request(
        "{\"messages\":" + messages + fields + "}", model_.defaults);
    EXPECT_TRUE(request.is_ok()) << request.status().message();
    auto made = make_generation(*request, model_);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return *std::move(made);
  }

  // The prompt's text up to each hint, without a bos token.
  std::vector<std::string> beginnings(
      const std::string& messages,
      const std::string& fields = "") {
    const GenerationRequest made = generation(messages, fields);
    std::vector<std::string> texts;
    for (const int hint : made.resume_hints) {
      std::string text;
      for (int i = 0; i < hint; ++i) {
        const TokenId id = made.prompt[static_cast<size_t>(i)];
        text += id < 256 ? std::string(1, static_cast<char>(id)) : "";
      }
      texts.push_back(text);
    }
    return texts;
  }

  SystemClock clock_;
  ServedModel model_ = make_fake_model();
};

TEST_F(ResumeHints, AreTheSharedPrefixTheTurnBeforeAndTheLastMessage) {
  EXPECT_EQ(
      beginnings(
          R"([{"role":"system","content":"S"},{"role":"user","content":"q"},
              {"role":"assistant","content":"t|a"},
              {"role":"user","content":"r"}])"),
      (std::vector<std::string>{
          "[system]S;[user]",
          "[system]S;[user]q;[assistant]a;",
          "[system]S;[user]q;[assistant]a;[user]r;"}));
}

TEST_F(ResumeHints, OfASingleMessageAreWhatAllConversationsShareAndItsEnd) {
  EXPECT_EQ(
      beginnings(R"([{"role":"user","content":"q"}])"),
      (std::vector<std::string>{"[user]", "[user]q;"}));
}

TEST_F(ResumeHints, WhatTheTemplateCanNotRenderHasNone) {
  auto compiled = ChatTemplate::compile(
      "{% if messages|length < 2 or not add_generation_prompt %}"
      "{{ raise_exception('no') }}{% endif %}[{{ messages[0].content }}]",
      "test",
      clock_);
  ASSERT_TRUE(compiled.is_ok());
  model_.chat_template = *compiled;
  EXPECT_TRUE(
      beginnings(
          R"([{"role":"system","content":"S"},{"role":"user","content":"q"}])")
          .empty());
}

TEST_F(ResumeHints, ModelsThatKeepEveryRowNeedNone) {
  model_.forgets = false;
  EXPECT_TRUE(beginnings(R"([{"role":"user","content":"q"}])").empty());
}

TEST_F(ResumeHints, RequestsThatKeepNothingNeedNone) {
  EXPECT_TRUE(
      beginnings(R"([{"role":"user","content":"q"}])", ",\"cache\":false")
          .empty());
}

// What the hints are for: the next turn's prompt agrees with this one's up to
// the end of the last message at least.
TEST_F(ResumeHints, NextTurnsPromptGoesOnFromTheLast) {
  const std::string turn = R"([{"role":"user","content":"q"})";
  const GenerationRequest first = generation(turn + "]");
  const GenerationRequest next = generation(
      turn +
      R"(,{"role":"assistant","content":"t|a"},{"role":"user","content":"r"}])");
  const auto last = first.resume_hints.back();
  ASSERT_LT(last, std::ssize(next.prompt));
  EXPECT_TRUE(std::equal(
      first.prompt.begin(), first.prompt.begin() + last, next.prompt.begin()));
}

} // namespace
} // namespace ingle

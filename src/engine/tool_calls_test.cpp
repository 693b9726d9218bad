// Rows of the scheduler whose answers have thoughts and tool calls in them. A
// grammar with one text makes the model say that.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/testing/scheduler_fixture.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

constexpr char kCall[] = "<tool_call>{\"name\": \"now\"}</tool_call>";

class ToolCallsTest : public SchedulerFixture<testing::Test> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(load_tiny_llama(Numerics::kNear));
    served_->eos = {kTinyEndOfText};
    served_->tokenizer =
        *Tokenizer::from_json(tiny_tokenizer_json(), "tokenizer.json");
    served_->grammars = std::make_shared<GrammarCompiler>(
        served_->tokenizer, served_->eos, served_->vocab_size);
    served_->markup = find_output_markup("<tool_call> </think>", nullptr);
    SchedulerOptions options;
    options.max_rows = 4;
    serve(*model_, options);
  }

  // Says `text`, one byte a token, and then ends if it may.
  GenerationRequest saying(const std::string& text, int max_tokens) const {
    GenerationRequest made;
    made.prompt = {'S', 'a', 'y'};
    made.max_tokens = max_tokens;
    GrammarSpec spec{
        GrammarSpec::Kind::kChoice, nlohmann::json::array({text}).dump()};
    auto grammar = served_->grammars->compile(spec);
    EXPECT_TRUE(grammar.is_ok()) << grammar.status().message();
    made.grammar = *grammar;
    OutputRouting routing;
    routing.splits_thoughts = true;
    routing.tools =
        std::make_shared<const ToolSignatures>(ToolSignatures{{"now", {}}});
    made.routing = std::make_shared<const OutputRouting>(routing);
    return made;
  }
  GenerationRequest saying(const std::string& text) const {
    return saying(text, static_cast<int>(text.size()) + 1);
  }
};

TEST_F(ToolCallsTest, CallsAndThoughtsAreNotInTheText) {
  const Sink sink =
      answer(saying("<think>why</think>So. " + std::string(kCall)));
  EXPECT_EQ(sink->text(), "So.");
  EXPECT_EQ(sink->reasoning(), "why");
  ASSERT_EQ(sink->tool_calls().size(), 1U);
  EXPECT_EQ(sink->tool_calls()[0].name, "now");
  EXPECT_EQ(sink->tool_calls()[0].arguments, "{}");
  EXPECT_EQ(sink->wait().stats.reasoning_tokens, 1 + 3 + 8);
}

// tool_calls, then stop, then length.
TEST_F(ToolCallsTest, finish_reason_precedence) {
  const std::string call = kCall;
  const auto reason = [&](GenerationRequest made) {
    return answer(std::move(made))->wait().reason;
  };
  EXPECT_EQ(reason(saying(call)), FinishReason::kToolCalls);
  EXPECT_EQ(
      reason(saying(call + "more", static_cast<int>(call.size()) + 2)),
      FinishReason::kToolCalls);
  GenerationRequest stopped = saying(call + "more");
  stopped.stop = {"r"};
  EXPECT_EQ(reason(stopped), FinishReason::kToolCalls);
  // A call that is cut off is none.
  EXPECT_EQ(
      reason(saying(call, static_cast<int>(call.size()) - 20)),
      FinishReason::kLength);
  stopped = saying("more");
  stopped.stop = {"e"};
  stopped.max_tokens = 4; // which is where it stops
  EXPECT_EQ(reason(stopped), FinishReason::kStop);
  EXPECT_EQ(reason(saying("more", 3)), FinishReason::kLength);
  // The end of the sequence is exactly the last token that it may have.
  EXPECT_EQ(reason(saying("more", 5)), FinishReason::kStop);
}

TEST_F(ToolCallsTest, OneCallEndsTheAnswer) {
  GenerationRequest made = saying(std::string(kCall) + kCall);
  OutputRouting routing = *made.routing;
  routing.one_call = true;
  made.routing = std::make_shared<const OutputRouting>(routing);
  const Sink sink = answer(std::move(made));
  EXPECT_EQ(sink->tool_calls().size(), 1U);
  EXPECT_EQ(
      sink->wait().stats.generated_tokens,
      static_cast<int>(std::string_view(kCall).size()));
  EXPECT_EQ(sink->wait().reason, FinishReason::kToolCalls);
}

TEST_F(ToolCallsTest, WhatIsHeldBackAtTheEndIsTold) {
  EXPECT_EQ(answer(saying("a <tool_"))->text(), "a <tool_");
  const Sink cancelled = start(saying("a <tool_call>{", 100));
  scheduler_->cancel(last_id_);
  run();
  EXPECT_EQ(cancelled->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(cancelled->text(), "");
}

TEST_F(ToolCallsTest, RowsWithCallsRunBesideOthers) {
  GenerationRequest plain = saying("<think>x</think>y");
  plain.routing = nullptr;
  const Sink calling = start(saying(kCall));
  const Sink other = start(std::move(plain));
  const Sink thinking = start(saying("<think>x</think>y"));
  run();
  EXPECT_EQ(calling->tool_calls().size(), 1U);
  EXPECT_EQ(other->text(), "<think>x</think>y");
  EXPECT_EQ(thinking->text(), "y");
}

} // namespace
} // namespace ingle

// Rows of the scheduler that follow a grammar.

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/testing/scheduler_fixture.h"
#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

using Json = nlohmann::ordered_json;
using Kind = GrammarSpec::Kind;

// A model that says anything, with a token for each byte and a few words.
class StructuredOutputTest : public SchedulerFixture<testing::Test> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(load_tiny_llama(Numerics::kNear));
    served_->eos = {kTinyEndOfText, kTinyImEnd};
    served_->tokenizer = *Tokenizer::from_json(
        tiny_tokenizer_json({{"\"", ":"}, {"t", "r"}, {"u", "e"}, {"}", "]"}}),
        "tokenizer.json");
    served_->grammars = std::make_shared<GrammarCompiler>(
        served_->tokenizer, served_->eos, served_->vocab_size);
    SchedulerOptions options;
    options.max_rows = 8;
    serve(*model_, options);
  }

  std::shared_ptr<const Grammar> compile(Kind kind, std::string text) const {
    auto grammar = served_->grammars->compile({kind, std::move(text)});
    EXPECT_TRUE(grammar.is_ok()) << grammar.status().message();
    return grammar.is_ok() ? *grammar : nullptr;
  }

  static GenerationRequest request(
      std::shared_ptr<const Grammar> grammar,
      int max_tokens = 40) {
    GenerationRequest made;
    made.prompt = {'S', 'a', 'y'};
    made.max_tokens = max_tokens;
    made.sampling.temperature = 1;
    made.grammar = std::move(grammar);
    return made;
  }

  // Whether the grammar takes the answer's tokens, and is complete with them.
  struct Reading {
    bool is_taken = false;
    bool is_complete = false;
  };
  static Reading read(const Grammar& grammar, const std::vector<TokenId>& ids) {
    const auto matcher = *grammar.make_matcher();
    for (const TokenId id : ids) {
      if (!matcher->accept(id).is_ok()) {
        return {};
      }
    }
    return {true, matcher->is_complete()};
  }
};

// JSON schemas as clients make them.
class RandomSchemas {
 public:
  explicit RandomSchemas(uint32_t seed) : random_(seed) {}

  Json document() {
    Json schema = object(2);
    schema["$defs"] = {{"Leaf", value(0)}, {"Pair", object(1)}};
    return schema;
  }

 private:
  int pick(int n) {
    return static_cast<int>(random_() % static_cast<uint32_t>(n));
  }

  Json value(int depth) {
    switch (pick(depth > 0 ? 11 : 7)) {
      case 0:
        return {{"type", "null"}};
      case 1:
        return {{"type", "boolean"}};
      case 2:
        return {{"type", "integer"}, {"minimum", pick(9)}, {"maximum", 2000}};
      case 3:
        return {{"type", "number"}, {"minimum", -1.5}, {"maximum", 1e6}};
      case 4:
        return {{"type", "string"}, {"maxLength", pick(8)}};
      case 5:
        return {{"enum", {"red", "green\n", 7, nullptr}}};
      case 6:
        return {{"type", "string"}, {"format", "date"}};
      case 7:
        return {
            {"type", "array"},
            {"items", value(depth - 1)},
            {"minItems", pick(2)},
            {"maxItems", 1 + pick(3)}};
      case 8:
        return {{"anyOf", {value(depth - 1), {{"type", "null"}}}}};
      case 9:
        return {{"$ref", pick(2) == 0 ? "#/$defs/Leaf" : "#/$defs/Pair"}};
      default:
        return object(depth - 1);
    }
  }

  Json object(int depth) {
    Json schema = {
        {"type", "object"},
        {"properties", Json::object()},
        {"required", Json::array()},
        {"additionalProperties", false}};
    for (const char* const name : {"a", "b c", "\"d\""}) {
      schema["properties"][name] =
          depth > 0 ? value(depth) : Json({{"type", "boolean"}});
      if (pick(3) > 0) {
        schema["required"].push_back(name);
      }
    }
    return schema;
  }

  std::mt19937 random_;
};

std::vector<SamplingParams> samplers() {
  std::vector<SamplingParams> all;
  for (const float temperature : {0.f, 0.7f, 1.5f, 2.f}) {
    SamplingParams plain;
    plain.temperature = temperature;
    SamplingParams top = plain;
    top.top_p = 0.5f;
    top.top_k = 3;
    SamplingParams odd = plain;
    odd.min_p = 0.2f;
    odd.xtc_probability = 1;
    odd.xtc_threshold = 0.05f;
    odd.repetition_penalty = 1.3f;
    odd.logit_bias = {{kTinyImEnd, 100}, {'x', 100}};
    all.insert(all.end(), {plain, top, odd});
  }
  return all;
}

TEST_F(StructuredOutputTest, AnswersAreValidWhateverTheSampler) {
  RandomSchemas schemas(7);
  int complete = 0;
  for (int i = 0; i < 12; ++i) {
    const std::string schema = schemas.document().dump();
    SCOPED_TRACE(schema);
    const auto grammar = compile(Kind::kJsonSchema, schema);
    ASSERT_NE(grammar, nullptr);
    std::vector<Sink> sinks;
    for (const SamplingParams& sampling : samplers()) {
      GenerationRequest made = request(grammar, 150);
      made.sampling = sampling;
      sinks.push_back(start(std::move(made), static_cast<uint64_t>(i)));
    }
    run();
    for (const Sink& sink : sinks) {
      const GenerationEnd end = sink->wait();
      ASSERT_TRUE(end.status.is_ok()) << end.status.message();
      const Reading reading = read(*grammar, sink->ids());
      EXPECT_TRUE(reading.is_taken) << sink->text();
      if (end.reason == FinishReason::kStop) {
        EXPECT_TRUE(reading.is_complete) << sink->text();
        EXPECT_TRUE(Json::accept(sink->text())) << sink->text();
        ++complete;
      }
    }
  }
  EXPECT_GT(complete, 40);
}

TEST_F(StructuredOutputTest, AnAnswerEndsWithItsGrammar) {
  const auto sink = answer(request(compile(Kind::kChoice, R"(["yes","no"])")));
  EXPECT_TRUE(sink->text() == "yes" || sink->text() == "no") << sink->text();
  EXPECT_EQ(sink->wait().reason, FinishReason::kStop);
  EXPECT_EQ(
      sink->wait().stats.generated_tokens,
      static_cast<int>(sink->text().size()));
}

TEST_F(StructuredOutputTest, TheLastAllowedTokenMayCompleteIt) {
  const auto grammar = compile(Kind::kRegex, "abc");
  const auto whole = answer(request(grammar, 3));
  EXPECT_EQ(whole->text(), "abc");
  EXPECT_EQ(whole->wait().reason, FinishReason::kStop);
  const auto cut = answer(request(grammar, 2));
  EXPECT_EQ(cut->text(), "ab");
  EXPECT_EQ(cut->wait().reason, FinishReason::kLength);
}

TEST_F(StructuredOutputTest, NoEndComesBeforeTheGrammarMayEnd) {
  GenerationRequest made = request(compile(Kind::kRegex, "[a-c]{5}d?"));
  made.sampling.logit_bias = {{kTinyImEnd, 100}};
  const auto sink = answer(made);
  EXPECT_EQ(sink->text().size(), 5u);
  EXPECT_EQ(sink->wait().reason, FinishReason::kStop);
}

TEST_F(StructuredOutputTest, MinTokensHoldsWhileTheGrammarCanGoOn) {
  GenerationRequest made = request(compile(Kind::kRegex, "[a-c]{5,20}"));
  made.sampling.logit_bias = {{kTinyImEnd, 100}};
  made.min_tokens = 12;
  EXPECT_EQ(answer(made)->text().size(), 12u);
  made.min_tokens = 30;
  const auto sink = answer(made);
  EXPECT_EQ(sink->text().size(), 20u);
  EXPECT_EQ(sink->wait().reason, FinishReason::kStop);
}

TEST_F(StructuredOutputTest, IgnoringTheEndGoesOnToTheGrammarsOwn) {
  GenerationRequest made = request(compile(Kind::kRegex, "[a-c]{5,20}"));
  made.sampling.logit_bias = {{kTinyImEnd, 100}};
  made.ignore_eos = true;
  EXPECT_EQ(answer(made)->text().size(), 20u);
}

TEST_F(StructuredOutputTest, StopStringsEndAnAnswerToo) {
  GenerationRequest made = request(compile(Kind::kRegex, "abcdef"));
  made.stop = {"de"};
  EXPECT_EQ(answer(made)->text(), "abc");
}

TEST_F(StructuredOutputTest, LogProbabilitiesAreTheModelsOwn) {
  GenerationRequest made = request(nullptr, 1);
  made.sampling.temperature = 0;
  made.top_logprobs = 3;
  const auto free_run = answer(made);
  made.grammar = compile(Kind::kRegex, "[0-9]");
  const auto held = answer(made);
  ASSERT_NE(held->ids(), free_run->ids());
  const auto free_top = free_run->tokens()[0].top;
  const auto held_top = held->tokens()[0].top;
  ASSERT_EQ(held_top.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(held_top[i].id, free_top[i].id);
    EXPECT_EQ(held_top[i].logprob, free_top[i].logprob);
  }
  EXPECT_LT(held->tokens()[0].logprob, free_run->tokens()[0].logprob);
}

// Acceptance 75, of grammars.
TEST_F(StructuredOutputTest, any_row_beside_any_row) {
  const auto schema = compile(
      Kind::kJsonSchema,
      R"({"type":"array","items":{"enum":["red",1]},"minItems":3})");
  const auto text = compile(Kind::kRegex, "([a-z]+ ){3}");
  std::vector<GenerationRequest> requests;
  for (const auto& grammar : {schema, text, std::shared_ptr<const Grammar>()}) {
    for (const float temperature : {0.f, 1.2f}) {
      GenerationRequest made = request(grammar, 30);
      made.sampling.temperature = temperature;
      requests.push_back(made);
    }
  }
  std::vector<std::vector<TokenId>> alone;
  for (const GenerationRequest& made : requests) {
    alone.push_back(answer(made, 5)->ids());
  }
  std::vector<Sink> together;
  for (const GenerationRequest& made : requests) {
    together.push_back(start(made, 5));
    scheduler_->step();
  }
  run();
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i]->ids(), alone[i]) << i;
  }
}

TEST_F(StructuredOutputTest, AGrammarThatGrowsTooLargeFailsItsRowAlone) {
  std::string lark = "start: /[a-c]/ /[a-c]/ /[a-c]/";
  for (int i = 0; i < 3000; ++i) {
    lark += " (\"b\" /" + std::to_string(i) + "/)?"; // each may be the next
  }
  const auto hostile = start(request(compile(Kind::kLark, lark)));
  const auto other = start(request(compile(Kind::kRegex, "[a-z]{30}")));
  const auto free_run = start(request(nullptr, 10));
  run();
  const Status status = hostile->wait().status;
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(status.message().substr(0, 9), "grammar: ");
  EXPECT_EQ(hostile->ends(), 1);
  EXPECT_EQ(other->text().size(), 30u);
  EXPECT_TRUE(free_run->wait().status.is_ok());
  EXPECT_EQ(answer(request(compile(Kind::kRegex, "ab")))->text(), "ab");
}

TEST_F(StructuredOutputTest, CancellingLeavesNoMaskBehind) {
  const auto grammar = compile(Kind::kRegex, "[a-z]{100}");
  for (int i = 0; i < 20; ++i) {
    const auto sink = start(request(grammar, 100));
    scheduler_->step();
    scheduler_->cancel(last_id_);
    EXPECT_EQ(sink->wait().reason, FinishReason::kCancelled);
  }
  EXPECT_EQ(answer(request(grammar, 200))->text().size(), 100u);
}

} // namespace
} // namespace ingle

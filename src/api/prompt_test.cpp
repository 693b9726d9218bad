#include "api/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/testing/fake_served_model.h"
#include "api/text_request.h"

namespace ingle {
namespace {

Result<GenerationRequest> chat(
    const ServedModel& model,
    const std::string& fields = "") {
  auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}",
      model.defaults);
  return request.is_ok() ? make_generation(*request, model) : request.status();
}

Result<GenerationRequest> completion(
    const ServedModel& model,
    const std::string& prompt,
    const std::string& fields = "") {
  auto request = parse_completion_request(
      "{\"prompt\":\"" + prompt + "\"" + fields + "}", model.defaults);
  return request.is_ok()
      ? make_generation(*request, request->prompts.front(), model)
      : request.status();
}

TEST(Prompt, DoubledBosIsDropped) {
  const auto generation = chat(make_fake_model());
  ASSERT_TRUE(generation.is_ok());
  EXPECT_EQ(
      generation->prompt,
      (std::vector<TokenId>{FakeTokenizer::kBos, 'h', 'e', 'l', 'l', 'o'}));
}

TEST(Prompt, EosThatTheTokenizerAppendsIsDropped) {
  ServedModel model = make_fake_model();
  model.tokenizer = std::make_shared<FakeTokenizer>(/*appends_eos=*/true);
  EXPECT_EQ(chat(model)->prompt.back(), 'o');
  // Raw text is as the tokenizer has it.
  EXPECT_EQ(completion(model, "x")->prompt.back(), FakeTokenizer::kEos);
}

TEST(Prompt, EosThatTheTemplateWritesStays) {
  using Ids = std::vector<TokenId>;
  const Ids expected = {FakeTokenizer::kBos, 'h', FakeTokenizer::kEos};
  ServedModel model = make_fake_model();
  model.chat_template =
      std::make_shared<FakeChatTemplate>(std::string("<s>h</s>"));
  EXPECT_EQ(chat(model)->prompt, expected);
  model.tokenizer = std::make_shared<FakeTokenizer>(/*appends_eos=*/true);
  EXPECT_EQ(chat(model)->prompt, expected);
  // One token for both: what the tokenizer adds stands in front.
  model.tokenizer = std::make_shared<FakeTokenizer>();
  model.special_tokens["bos_token"] = "</s>";
  EXPECT_EQ(chat(model)->prompt.back(), FakeTokenizer::kEos);
}

TEST(Prompt, AbsentToolsAndDocumentsAreNull) {
  const ServedModel model = make_fake_model();
  const auto& seen =
      dynamic_cast<const FakeChatTemplate&>(*model.chat_template);
  ASSERT_TRUE(chat(model).is_ok());
  EXPECT_NE(
      seen.context().find(R"(,"tools":null,"documents":null,)"),
      std::string::npos);
  ASSERT_TRUE(
      chat(model, R"(,"chat_template_kwargs":{"documents":[1]})").is_ok());
  EXPECT_EQ(seen.context().find("\"documents\":null"), std::string::npos);
  EXPECT_NE(seen.context().find("\"documents\":[1]"), std::string::npos);
}

TEST(Prompt, TemplateGetsItsVariables) {
  const ServedModel model = make_fake_model();
  ASSERT_TRUE(chat(
                  model,
                  R"(,"tools":[{"type":"function","function":{"name":"f"}}],)"
                  R"("chat_template_kwargs":)"
                  R"({"enable_thinking":false})")
                  .is_ok());
  const auto& seen =
      dynamic_cast<const FakeChatTemplate&>(*model.chat_template);
  EXPECT_EQ(
      seen.context(),
      R"({"messages":[{"role":"user","content":"hi"}],)"
      R"("tools":[{"type":"function","function":{"name":"f"}}],)"
      R"("documents":null,)"
      R"("add_generation_prompt":true,)"
      R"("bos_token":"<s>","eos_token":"</s>","enable_thinking":false})");
}

TEST(Prompt, ThoughtsAndCallsAreTakenOutOfTheAnswer) {
  ServedModel model = make_fake_model();
  model.markup = find_output_markup("<tool_call> </think>", nullptr);
  const auto plain = chat(model);
  ASSERT_NE(plain->routing, nullptr);
  EXPECT_TRUE(plain->routing->splits_thoughts);
  EXPECT_FALSE(plain->routing->starts_in_thought);
  EXPECT_EQ(plain->routing->tools, nullptr);
  EXPECT_FALSE(plain->routing->one_call);
  model.chat_template =
      std::make_shared<FakeChatTemplate>(std::string("<s>hello<think>\n"));
  const auto calling = chat(
      model,
      R"(,"tools":[{"type":"function","function":{"name":"f"}}],)"
      R"("parallel_tool_calls":false)");
  EXPECT_TRUE(calling->routing->starts_in_thought);
  EXPECT_TRUE(calling->routing->tools->contains("f"));
  EXPECT_TRUE(calling->routing->one_call);
}

// Mistral's templates refuse others.
TEST(Prompt, IdsOfCallsAreShortWhereTheyHaveToBe) {
  ServedModel model = make_fake_model();
  const auto& seen =
      dynamic_cast<const FakeChatTemplate&>(*model.chat_template);
  const auto body = [](const std::string& id) {
    return R"({"messages":[{"role":"assistant","tool_calls":[{"id":")" + id +
        R"(","type":"function","function":{"name":"f","arguments":"{}"}}]},)"
        R"({"role":"tool","content":"1","tool_call_id":")" +
        id + "\"}]}";
  };
  const auto id_of = [&](const std::string& id) {
    EXPECT_TRUE(apply_template(body(id), model).is_ok());
    const std::string context = seen.context();
    constexpr std::string_view kKey = R"("tool_call_id":")";
    const size_t at = context.find(kKey) + kKey.size();
    const std::string seen_id = context.substr(at, context.find('"', at) - at);
    EXPECT_NE(context.find(R"("id":")" + seen_id + "\""), std::string::npos);
    return seen_id;
  };
  EXPECT_EQ(id_of("call_0123abcd"), "call_0123abcd");
  model.markup = find_output_markup("[TOOL_CALLS]", nullptr);
  EXPECT_EQ(id_of("call_0123abcd").size(), 9U);
  EXPECT_NE(id_of("call_0123abcd"), id_of("call_0123abce"));
  EXPECT_EQ(id_of("Abcdef012"), "Abcdef012");
}

TEST(Prompt, TemplateSeesTheModelsOtherSpecialTokens) {
  ServedModel model = make_fake_model();
  model.special_tokens["pad_token"] = "<pad>";
  ASSERT_TRUE(chat(model).is_ok());
  const auto& seen =
      dynamic_cast<const FakeChatTemplate&>(*model.chat_template);
  EXPECT_THAT(
      seen.context(),
      testing::HasSubstr(R"("eos_token":"</s>","pad_token":"<pad>"})"));
}

TEST(Prompt, TokenThatTheModelLacksIsUndefined) {
  ServedModel model = make_fake_model();
  model.special_tokens.erase("bos_token");
  ASSERT_TRUE(chat(model).is_ok());
  const auto& seen =
      dynamic_cast<const FakeChatTemplate&>(*model.chat_template);
  EXPECT_THAT(
      seen.context(), testing::Not(testing::HasSubstr("\"bos_token\"")));
  EXPECT_THAT(seen.context(), testing::HasSubstr(R"("eos_token":"</s>"})"));
}

TEST(Prompt, FailureOfTheTemplateIsTheClients) {
  ServedModel model = make_fake_model();
  model.chat_template = std::make_shared<FakeChatTemplate>(
      Status::invalid_request("roles must alternate")
          .with_reason("template_error"));
  const Status refused = chat(model).status();
  EXPECT_EQ(refused.reason(), "template_error");
  EXPECT_EQ(refused.where(), "messages");
  EXPECT_NE(refused.message().find("roles must alternate"), std::string::npos);
}

// As the default model's template does.
TEST(Prompt, CallWithoutTextHasAnEmptyOneWhereTheTemplateNeedsIt) {
  const SystemClock clock;
  ServedModel model = make_fake_model();
  const std::string body =
      R"({"messages":[{"role":"assistant","content":null,"tool_calls":[)"
      R"({"id":"c","type":"function","function":{"name":"f"}}]}]})";
  const auto prompt_by = [&](std::string_view source) {
    model.chat_template = *ChatTemplate::compile(source, "template", clock);
    const auto applied = apply_template(body, model);
    EXPECT_TRUE(applied.is_ok()) << applied.status().message();
    return applied.is_ok() ? *applied : std::string();
  };
  EXPECT_EQ(
      prompt_by("{{ 'said ' + messages[0]['content'] }}"),
      R"({"prompt":"said "})");
  EXPECT_EQ(
      prompt_by("{{ messages[0]['content'] is defined }}"),
      R"({"prompt":"False"})");
}

TEST(Prompt, ModelWithoutTemplateOrTokenizer) {
  ServedModel model = make_fake_model();
  model.chat_template = nullptr;
  EXPECT_EQ(chat(model).status().reason(), "no_chat_template");
  model.tokenizer = nullptr;
  EXPECT_EQ(completion(model, "x").status().reason(), "no_tokenizer");
}

TEST(Prompt, IdsAreTakenAsTheyAreAndNeedNoTokenizer) {
  ServedModel model = make_fake_model();
  model.tokenizer = nullptr;
  CompletionRequest request;
  request.prompts = {{"prompt", std::vector<TokenId>{5, 0, 5}}};
  const auto generation =
      make_generation(request, request.prompts.front(), model);
  ASSERT_TRUE(generation.is_ok()) << generation.status().message();
  EXPECT_EQ(generation->prompt, (std::vector<TokenId>{5, 0, 5}));
}

TEST(Prompt, TextThatCannotFitIsNotEncoded) {
  ServedModel model = make_fake_model();
  model.context_length = 10;
  model.chat_template = std::make_shared<FakeChatTemplate>(
      std::string(10 * kMaxBytesPerToken + 1, 'x'));
  for (const auto& refused :
       {chat(model), completion(model, std::string(2561, 'x'))}) {
    EXPECT_EQ(refused.status().reason(), "context_length_exceeded");
    EXPECT_EQ(
        refused.status().message(),
        refused.status().where() +
            ": the text has 2561 bytes, more than fit the model's context of "
            "10 tokens: shorten it");
  }
}

TEST(Prompt, UnsetMaxTokensIsWhatIsLeft) {
  ServedModel model = make_fake_model();
  EXPECT_EQ(chat(model)->max_tokens, 4096 - 6);
  EXPECT_EQ(completion(model, "abc")->max_tokens, 512);
  model.context_length = 10;
  EXPECT_EQ(completion(model, "abc")->max_tokens, 6);
}

TEST(Prompt, UnsetMaxTokensIsAsTheServerWasTold) {
  ServedModel model = make_fake_model();
  model.defaults.max_tokens = 9;
  EXPECT_EQ(chat(model)->max_tokens, 9);
  EXPECT_EQ(completion(model, "abc")->max_tokens, 9);
  EXPECT_EQ(completion(model, "abc", R"(,"max_tokens":7)")->max_tokens, 7);
  EXPECT_EQ(completion(model, "abc", R"(,"min_tokens":11)")->max_tokens, 11);
}

TEST(Prompt, NoAnswerNeedsNoRoom) {
  ServedModel model = make_fake_model();
  model.context_length = 4;
  EXPECT_EQ(completion(model, "abc", R"(,"max_tokens":0)")->max_tokens, 0);
  EXPECT_FALSE(completion(model, "abc").is_ok());
  EXPECT_FALSE(completion(model, "abcd", R"(,"max_tokens":0)").is_ok());
}

TEST(Prompt, PromptLogprobsAreThoseOfAnEcho) {
  const ServedModel model = make_fake_model();
  EXPECT_FALSE(completion(model, "x", R"(,"echo":true)")->prompt_logprobs);
  EXPECT_FALSE(completion(model, "x", R"(,"logprobs":0)")->prompt_logprobs);
  EXPECT_TRUE(
      completion(model, "x", R"(,"echo":true,"logprobs":0)")->prompt_logprobs);
}

TEST(Prompt, RepeatedGenerationsDifferInTheirSeeds) {
  GenerationRequest generation;
  generation.sampling.seed = ~uint64_t{0};
  const auto seeded = repeat(generation, 3);
  ASSERT_EQ(seeded.size(), 3u);
  EXPECT_EQ(seeded[0].sampling.seed, ~uint64_t{0});
  EXPECT_EQ(seeded[1].sampling.seed, uint64_t{0});
  EXPECT_EQ(seeded[2].sampling.seed, uint64_t{1});
  generation.sampling.seed.reset();
  EXPECT_EQ(repeat(generation, 2)[1].sampling.seed, std::nullopt);
}

TEST(Prompt, OverTheContextIsRefused) {
  ServedModel model = make_fake_model();
  model.context_length = 10;
  EXPECT_EQ(completion(model, "abc", R"(,"max_tokens":6)")->max_tokens, 6);
  for (const auto& refused :
       {completion(model, "abc", R"(,"max_tokens":7)"),
        completion(model, "abcdefghi"),
        completion(model, std::string(100, 'a'))}) {
    ASSERT_FALSE(refused.is_ok());
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidRequest);
    EXPECT_EQ(refused.status().reason(), "context_length_exceeded");
  }
}

// Acceptance 101, with the HTTP side in tests/e2e/test_memory.py.
TEST(Prompt, OverTheMemoryBudgetIsRefusedWithItsParts) {
  ServedModel model = make_fake_model();
  model.memory_context = 10;
  EXPECT_EQ(completion(model, "abc")->max_tokens, 6); // clamped
  EXPECT_EQ(completion(model, "abc", R"(,"max_tokens":6)")->max_tokens, 6);
  const Status refused =
      completion(model, "abc", R"(,"max_tokens":7)").status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(refused.reason(), "context_over_budget");
  EXPECT_EQ(
      refused.message(),
      "max_tokens: the prompt has 4 tokens and max_tokens is 7, together 11, "
      "more than the 10 tokens that fit in the server's memory budget: shorten "
      "the prompt or lower max_tokens");
  EXPECT_EQ(
      completion(model, "abcdefghi").status().reason(), "context_over_budget");
  // What no budget would make possible is said first.
  EXPECT_EQ(
      completion(model, "abc", R"(,"max_tokens":9999)").status().reason(),
      "context_length_exceeded");
}

TEST(Prompt, RefusalNamesTheFieldThatWasSent) {
  const ServedModel model = make_fake_model();
  EXPECT_EQ(
      chat(model, R"(,"max_tokens":9999)").status().where(), "max_tokens");
  const Status refused =
      chat(model, R"(,"max_completion_tokens":9999)").status();
  EXPECT_EQ(refused.where(), "max_completion_tokens");
  EXPECT_EQ(refused.message().find("max_tokens"), std::string::npos);
}

TEST(Prompt, KnobsFallBackToTheModelThenToConstants) {
  ServedModel model = make_fake_model();
  SamplingParams sampling = chat(model)->sampling;
  EXPECT_EQ(sampling.temperature, 0.7f);
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.seed, std::nullopt);
  model.defaults.temperature = 0.2f;
  model.defaults.top_p = 0.8f;
  model.defaults.min_p = 0.1f;
  model.defaults.top_k = 20;
  model.defaults.repetition_penalty = 1.5f;
  sampling = chat(model)->sampling;
  EXPECT_EQ(sampling.temperature, 0.2f);
  EXPECT_EQ(sampling.top_p, 0.8f);
  EXPECT_EQ(sampling.min_p, 0.1f);
  EXPECT_EQ(sampling.top_k, 20);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  sampling = chat(model, R"(,"temperature":0,"top_p":1,"top_k":0)")->sampling;
  EXPECT_EQ(sampling.temperature, 0.0f);
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.top_k, 0);
}

} // namespace
} // namespace ingle

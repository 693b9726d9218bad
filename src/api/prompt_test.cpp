#include "api/prompt.h"

#include <gtest/gtest.h>

#include "api/fake_served_model.h"

namespace ingle {
namespace {

Result<GenerationRequest> chat(
    const ServedModel& model,
    const std::string& fields = "") {
  auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}");
  return request.is_ok() ? make_generation(*request, model) : request.status();
}

Result<GenerationRequest> completion(
    const ServedModel& model,
    const std::string& prompt,
    const std::string& fields = "") {
  auto request =
      parse_completion_request("{\"prompt\":\"" + prompt + "\"" + fields + "}");
  return request.is_ok() ? make_generation(*request, model) : request.status();
}

TEST(Prompt, DoubledBosIsDropped) {
  const auto generation = chat(make_fake_model());
  ASSERT_TRUE(generation.is_ok());
  EXPECT_EQ(
      generation->prompt,
      (std::vector<TokenId>{FakeTokenizer::kBos, 'h', 'e', 'l', 'l', 'o'}));
}

TEST(Prompt, TemplateGetsItsVariables) {
  const ServedModel model = make_fake_model();
  ASSERT_TRUE(chat(
                  model,
                  R"(,"tools":[{"b":1,"a":2}],"chat_template_kwargs":)"
                  R"({"enable_thinking":false,"messages":"mine"})")
                  .is_ok());
  const auto& seen =
      dynamic_cast<const FakeChatTemplate&>(*model.chat_template);
  EXPECT_EQ(
      seen.context(),
      R"({"messages":[{"role":"user","content":"hi"}],)"
      R"("tools":[{"b":1,"a":2}],"add_generation_prompt":true,)"
      R"("bos_token":"<s>","eos_token":"</s>","enable_thinking":false})");
}

TEST(Prompt, FailureOfTheTemplateIsTheClients) {
  ServedModel model = make_fake_model();
  model.chat_template = std::make_shared<FakeChatTemplate>(
      Status::invalid_request("roles must alternate")
          .with_reason("template_error"));
  EXPECT_EQ(chat(model).status().reason(), "template_error");
}

TEST(Prompt, ModelWithoutTemplateOrTokenizer) {
  ServedModel model = make_fake_model();
  model.chat_template = nullptr;
  EXPECT_EQ(chat(model).status().reason(), "no_chat_template");
  model.tokenizer = nullptr;
  EXPECT_EQ(completion(model, "x").status().reason(), "no_tokenizer");
}

TEST(Prompt, UnsetMaxTokensIsWhatIsLeft) {
  ServedModel model = make_fake_model();
  EXPECT_EQ(chat(model)->max_tokens, 4096 - 6);
  EXPECT_EQ(completion(model, "abc")->max_tokens, 512);
  model.context_length = 10;
  EXPECT_EQ(completion(model, "abc")->max_tokens, 6);
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

TEST(Prompt, KnobsFallBackToTheModelThenToConstants) {
  ServedModel model = make_fake_model();
  SamplingParams sampling = chat(model)->sampling;
  EXPECT_EQ(sampling.temperature, 0.7f);
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.seed, std::nullopt);
  model.defaults = {0.2f, 0.8f, 20};
  sampling = chat(model)->sampling;
  EXPECT_EQ(sampling.temperature, 0.2f);
  EXPECT_EQ(sampling.top_p, 0.8f);
  EXPECT_EQ(sampling.top_k, 20);
  sampling = chat(model, R"(,"temperature":0,"top_p":1,"top_k":0)")->sampling;
  EXPECT_EQ(sampling.temperature, 0.0f);
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.top_k, 0);
}

} // namespace
} // namespace ingle

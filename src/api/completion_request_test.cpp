#include "api/completion_request.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

using Ids = std::vector<TokenId>;

Result<CompletionRequest> parse(const std::string& body) {
  return parse_completion_request(body, GenerationDefaults());
}

std::vector<CompletionPrompt> prompts_of(const std::string& prompt) {
  auto request = parse("{\"prompt\":" + prompt + "}");
  EXPECT_TRUE(request.is_ok()) << request.status().message();
  return request.is_ok() ? request->prompts : std::vector<CompletionPrompt>();
}

TEST(CompletionRequest, PromptIsTextOrIds) {
  const auto text = prompts_of(R"("a b")");
  ASSERT_EQ(text.size(), 1u);
  EXPECT_EQ(text[0].path, "prompt");
  EXPECT_EQ(std::get<std::string>(text[0].content), "a b");
  const auto ids = prompts_of("[5,0,5]");
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_EQ(ids[0].path, "prompt");
  EXPECT_EQ(std::get<Ids>(ids[0].content), (Ids{5, 0, 5}));
}

TEST(CompletionRequest, ManyPromptsKeepTheirOrderAndPlaces) {
  const auto prompts = prompts_of(R"(["a",[1,2],"b"])");
  ASSERT_EQ(prompts.size(), 3u);
  EXPECT_EQ(std::get<std::string>(prompts[0].content), "a");
  EXPECT_EQ(std::get<Ids>(prompts[1].content), (Ids{1, 2}));
  EXPECT_EQ(std::get<std::string>(prompts[2].content), "b");
  EXPECT_EQ(prompts[2].path, "prompt[2]");
  EXPECT_EQ(prompts_of(R"([[1],[2]])").size(), 2u);
}

TEST(CompletionRequest, ReadsItsOwnKnobs) {
  const auto request =
      parse(R"({"prompt":"x","echo":true,"logprobs":5,"n":3,"best_of":3,)"
            R"("max_tokens":0})");
  ASSERT_TRUE(request.is_ok()) << request.status().message();
  EXPECT_TRUE(request->echo);
  EXPECT_EQ(request->options.top_logprobs, 5);
  EXPECT_EQ(request->options.n, 3);
  EXPECT_EQ(request->options.max_tokens, 0);
}

TEST(CompletionRequest, LogprobsZeroIsTheChosenTokenAlone) {
  EXPECT_EQ(parse(R"({"prompt":"x","logprobs":0})")->options.top_logprobs, 0);
  EXPECT_EQ(
      parse(R"({"prompt":"x","logprobs":null})")->options.top_logprobs,
      std::nullopt);
}

TEST(CompletionRequest, AnswersAreLimitedOverAllPrompts) {
  std::string prompts = "\"a\"";
  for (int i = 0; i < 64; ++i) {
    prompts += ",\"a\"";
  }
  const auto fits = parse("{\"prompt\":[" + prompts.substr(4) + "],\"n\":2}");
  EXPECT_TRUE(fits.is_ok());
  const Status refused =
      parse("{\"prompt\":[" + prompts + "],\"n\":2}").status();
  EXPECT_EQ(refused.where(), "prompt");
  EXPECT_EQ(
      refused.message(),
      "prompt: expected at most 128 answers (prompts times n), got 130");
}

} // namespace
} // namespace ingle

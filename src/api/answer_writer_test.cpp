// Wire bytes, as clients read them.
#include "api/answer_writer.h"

#include <gtest/gtest.h>

#include "api/error_body.h"

namespace ingle {
namespace {

const AnswerIdentity kIdentity = {"u1", "tiny", 1700000000};

GenerationEnd finished() {
  GenerationEnd end;
  end.reason = FinishReason::kLength;
  end.stats.prompt_tokens = 6;
  end.stats.cached_tokens = 4;
  end.stats.generated_tokens = 2;
  return end;
}

std::string stream_of(AnswerWriter& writer) {
  std::string stream = writer.begin();
  stream += writer.delta({{}, "Par"});
  stream += writer.delta({{}, ""});
  stream += writer.delta({{}, "is\n"});
  stream += writer.end(finished());
  return stream;
}

// What stands before the choices of a chunk.
std::string head(const std::string& prefix, const std::string& object) {
  return R"(data: {"id":")" + prefix + R"(-u1","object":")" + object +
      R"(","created":1700000000,"model":"tiny","choices":)";
}

const std::string kChat = head("chatcmpl", "chat.completion.chunk");
const std::string kText = head("cmpl", "text_completion");
const std::string kUsage =
    R"("usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8,)"
    R"("prompt_tokens_details":{"cached_tokens":4}})";

TEST(ChatWriter, StreamBytes) {
  EXPECT_EQ(
      stream_of(*make_chat_writer(kIdentity, false)),
      kChat +
          R"([{"index":0,"delta":{"role":"assistant","content":""},)"
          R"("finish_reason":null}]})"
          "\n\n" +
          kChat +
          R"([{"index":0,"delta":{"content":"Par"},"finish_reason":null}]})"
          "\n\n" +
          kChat +
          R"([{"index":0,"delta":{"content":"is\n"},"finish_reason":null}]})"
          "\n\n" +
          kChat + R"([{"index":0,"delta":{},"finish_reason":"length"}],)" +
          kUsage +
          "}\n\n"
          "data: [DONE]\n\n");
}

TEST(ChatWriter, UsageChunkOfItsOwnWhenAsked) {
  EXPECT_EQ(
      stream_of(*make_chat_writer(kIdentity, true)),
      kChat +
          R"([{"index":0,"delta":{"role":"assistant","content":""},)"
          R"("finish_reason":null}],"usage":null})"
          "\n\n" +
          kChat +
          R"([{"index":0,"delta":{"content":"Par"},"finish_reason":null}],)"
          R"("usage":null})"
          "\n\n" +
          kChat +
          R"([{"index":0,"delta":{"content":"is\n"},"finish_reason":null}],)"
          R"("usage":null})"
          "\n\n" +
          kChat +
          R"([{"index":0,"delta":{},"finish_reason":"length"}],"usage":null})"
          "\n\n" +
          kChat + "[]," + kUsage +
          "}\n\n"
          "data: [DONE]\n\n");
}

TEST(ChatWriter, WholeBody) {
  EXPECT_EQ(
      make_chat_writer(kIdentity, false)->whole("Paris", finished()),
      R"({"id":"chatcmpl-u1","object":"chat.completion",)"
      R"("created":1700000000,"model":"tiny","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":"Paris"},)"
      R"("finish_reason":"length"}],)" +
          kUsage + "}");
}

TEST(CompletionWriter, StreamBytes) {
  EXPECT_EQ(
      stream_of(*make_completion_writer(kIdentity, false)),
      kText +
          R"([{"index":0,"text":"Par","logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          kText +
          R"([{"index":0,"text":"is\n","logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          kText +
          R"([{"index":0,"text":"","logprobs":null,"finish_reason":"length"}],)" +
          kUsage +
          "}\n\n"
          "data: [DONE]\n\n");
}

TEST(CompletionWriter, WholeBody) {
  EXPECT_EQ(
      make_completion_writer(kIdentity, false)->whole("Paris", finished()),
      R"({"id":"cmpl-u1","object":"text_completion","created":1700000000,)"
      R"("model":"tiny","choices":[{"index":0,"text":"Paris",)"
      R"("logprobs":null,"finish_reason":"length"}],)" +
          kUsage + "}");
}

TEST(AnswerWriter, TextThatIsNotUtf8IsReplaced) {
  const auto writer = make_chat_writer(kIdentity, false);
  const std::string event = writer->delta({{}, "a\xff"});
  EXPECT_NE(event.find("a\xEF\xBF\xBD"), std::string::npos);
}

TEST(ErrorBody, HasOpenAisShape) {
  EXPECT_EQ(
      error_body(Status::invalid_request("too long")
                     .with_reason("context_length_exceeded")
                     .with_where("messages")),
      R"({"error":{"message":"too long","type":"invalid_request_error",)"
      R"("param":"messages","code":"context_length_exceeded"}})");
  EXPECT_EQ(
      failure_event(Status::internal("no luck")),
      "data: {\"error\":{\"message\":\"no luck\",\"type\":\"server_error\","
      "\"param\":null,\"code\":null}}\n\n");
}

TEST(ErrorBody, LongMessageIsCutBetweenCharacters) {
  const std::string euro = "\xe2\x82\xac";
  for (size_t before : {990u, 991u, 992u, 993u, 994u, 995u, 996u, 997u}) {
    std::string message(before, 'x');
    message += euro + euro + euro + euro;
    const std::string body = error_body(Status::invalid_request(message));
    EXPECT_LT(body.size(), kMaxErrorMessage + 100) << before;
    EXPECT_EQ(body.find("\xef\xbf\xbd"), std::string::npos) << before;
    EXPECT_NE(body.find("...\",\"type\""), std::string::npos) << before;
  }
  const std::string fits(kMaxErrorMessage, 'x');
  EXPECT_NE(
      error_body(Status::invalid_request(fits)).find(fits), std::string::npos);
}

TEST(ErrorBody, OnlyTheClientsFaultsAre4xx) {
  EXPECT_EQ(http_status(Status()), 200);
  EXPECT_EQ(http_status(Status::invalid_request("")), 400);
  EXPECT_EQ(http_status(Status::not_found("")), 404);
  EXPECT_EQ(http_status(Status::overloaded("")), 503);
  EXPECT_EQ(http_status(Status(StatusCode::kTimeout, "")), 504);
  for (const StatusCode code :
       {StatusCode::kNoSpace,
        StatusCode::kIo,
        StatusCode::kCorruption,
        StatusCode::kUnsupported,
        StatusCode::kInternal}) {
    EXPECT_EQ(http_status(Status(code, "")), 500);
  }
}

} // namespace
} // namespace ingle

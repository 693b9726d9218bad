// Wire bytes, as clients read them.
#include "api/answer_writer.h"

#include <gtest/gtest.h>

#include "api/error_body.h"
#include "api/testing/fake_served_model.h"

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

AnswerOptions streamed() {
  AnswerOptions options;
  options.stream = true;
  return options;
}

AnswerOptions streamed_with_usage() {
  AnswerOptions options = streamed();
  options.include_usage = true;
  return options;
}

std::unique_ptr<AnswerWriter> chat_writer(AnswerOptions options) {
  return make_chat_writer(
      kIdentity, std::move(options), std::make_shared<FakeTokenizer>());
}

std::unique_ptr<AnswerWriter> completion_writer(AnswerOptions options) {
  return make_completion_writer(
      kIdentity, std::move(options), std::make_shared<FakeTokenizer>());
}

std::string stream_of(AnswerWriter& writer) {
  std::string stream = writer.begin();
  stream += writer.delta(0, {{}, "Par"});
  stream += writer.delta(0, {{}, ""});
  stream += writer.delta(0, {{}, "is\n"});
  stream += writer.end(0, finished());
  return stream;
}

// The one body of an answer that is not streamed.
std::string whole(AnswerWriter& writer) {
  return stream_of(writer);
}

// A token of FakeTokenizer, with one alternative.
GeneratedToken token(char byte, float logprob) {
  GeneratedToken token;
  token.id = static_cast<unsigned char>(byte);
  token.logprob = logprob;
  token.top = {{token.id, logprob}, {'z', -2.0f}};
  return token;
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
    R"("prompt_tokens_details":{"cached_tokens":4},)"
    R"("completion_tokens_details":{"reasoning_tokens":0}})";

TEST(ChatWriter, StreamBytes) {
  EXPECT_EQ(
      stream_of(*chat_writer(streamed())),
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
      stream_of(*chat_writer(streamed_with_usage())),
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
      whole(*chat_writer({})),
      R"({"id":"chatcmpl-u1","object":"chat.completion",)"
      R"("created":1700000000,"model":"tiny","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":"Paris\n"},)"
      R"("finish_reason":"length"}],)" +
          kUsage + "}");
}

TEST(CompletionWriter, StreamBytes) {
  EXPECT_EQ(
      stream_of(*completion_writer(streamed())),
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
      whole(*completion_writer({})),
      R"({"id":"cmpl-u1","object":"text_completion","created":1700000000,)"
      R"("model":"tiny","choices":[{"index":0,"text":"Paris\n",)"
      R"("logprobs":null,"finish_reason":"length"}],)" +
          kUsage + "}");
}

const std::string kLogprobsOfA =
    R"({"id":97,"token":"a","bytes":[97],"logprob":-0.5,"top_logprobs":[)"
    R"({"id":97,"token":"a","bytes":[97],"logprob":-0.5},)"
    R"({"id":122,"token":"z","bytes":[122],"logprob":-2.0}]})";

TEST(ChatWriter, logprobs_blocks) {
  AnswerOptions options;
  options.top_logprobs = 2;
  const auto writer = chat_writer(options);
  writer->begin();
  writer->delta(0, {{token('a', -0.5f)}, "a"});
  const std::string body = writer->end(0, finished());
  EXPECT_NE(
      body.find(
          R"("message":{"role":"assistant","content":"a"},"logprobs":)"
          R"({"content":[)" +
          kLogprobsOfA + R"(],"refusal":null},"finish_reason":"length")"),
      std::string::npos)
      << body;
}

TEST(ChatWriter, logprobs_in_stream) {
  AnswerOptions options = streamed();
  options.top_logprobs = 2;
  const auto writer = chat_writer(options);
  EXPECT_EQ(
      writer->delta(0, {{token('a', -0.5f)}, ""}),
      kChat + R"([{"index":0,"delta":{"content":""},"logprobs":{"content":[)" +
          kLogprobsOfA +
          R"(],"refusal":null},"finish_reason":null}]})"
          "\n\n");
  // Asked for or not, a chunk without tokens has none.
  EXPECT_EQ(
      writer->delta(0, {{}, "b"}),
      kChat +
          R"([{"index":0,"delta":{"content":"b"},"finish_reason":null}]})"
          "\n\n");
}

TEST(ChatWriter, LogprobOfAPieceOfACharacterHasItsBytes) {
  AnswerOptions options = streamed();
  options.top_logprobs = 0;
  GeneratedToken piece;
  piece.id = 0xc3;
  piece.logprob = -9999;
  EXPECT_NE(
      chat_writer(options)
          ->delta(0, {{piece}, ""})
          .find("{\"id\":195,\"token\":\"\xEF\xBF\xBD\",\"bytes\":[195],"
                "\"logprob\":-9999.0,\"top_logprobs\":[]}"),
      std::string::npos);
}

TEST(CompletionWriter, LogprobsHaveOpenAisShape) {
  AnswerOptions options;
  options.top_logprobs = 2;
  const auto writer = completion_writer(options);
  writer->begin();
  writer->delta(0, {{token('a', -0.5f)}, "a"});
  writer->delta(0, {{token('z', -2.0f)}, "z"});
  const std::string body = writer->end(0, finished());
  EXPECT_NE(
      body.find(R"("text":"az","logprobs":{"tokens":["a","z"],)"
                R"("token_logprobs":[-0.5,-2.0],)"
                R"("top_logprobs":[{"a":-0.5,"z":-2.0},{"z":-2.0}],)"
                R"("text_offset":[0,1],"content":[)"),
      std::string::npos)
      << body;
}

TEST(CompletionWriter, EchoComesFirstWithItsLogprobs) {
  for (const bool stream : {false, true}) {
    AnswerOptions options;
    options.stream = stream;
    options.top_logprobs = 0;
    // The tokenizer put a bos token in front, which is not in the text.
    options.echoes = {{"\u00e9b", FakeTokenizer::kBos}};
    const auto writer = completion_writer(options);
    PrefillStep step;
    for (const char byte : {'\xc3', '\xa9', 'b'}) {
      GeneratedToken echoed;
      echoed.id = static_cast<unsigned char>(byte);
      echoed.logprob = -1;
      step.tokens.push_back(echoed);
    }
    std::string answer = writer->begin();
    answer += writer->prefill(0, step);
    GeneratedToken generated;
    generated.id = 'c';
    generated.logprob = -1;
    answer += writer->delta(0, {{generated}, "c"});
    answer += writer->end(0, finished());
    if (stream) {
      EXPECT_NE(answer.find("\"text\":\"\u00e9b\""), std::string::npos);
      EXPECT_NE(answer.find(R"("text_offset":[0],)"), std::string::npos);
      EXPECT_NE(answer.find(R"("text_offset":[0,1,1],)"), std::string::npos);
      EXPECT_NE(answer.find(R"("text_offset":[2],)"), std::string::npos);
    } else {
      EXPECT_NE(answer.find("\"text\":\"\u00e9bc\""), std::string::npos);
      EXPECT_NE(answer.find(R"("text_offset":[0,0,1,1,2],)"), std::string::npos)
          << answer;
    }
    EXPECT_NE(answer.find(R"("token_logprobs":[null)"), std::string::npos);
  }
}

TEST(AnswerWriter, ChoicesEndOneByOneAndUsageComesWithTheLast) {
  AnswerOptions options = streamed();
  options.prompts = 2;
  options.choices_per_prompt = 2;
  const auto writer = completion_writer(options);
  EXPECT_EQ(writer->begin(), "");
  for (const size_t choice : {2u, 0u, 3u}) {
    EXPECT_EQ(
        writer->end(choice, finished()),
        kText + R"([{"index":)" + std::to_string(choice) +
            R"(,"text":"","logprobs":null,"finish_reason":"length"}]})" +
            "\n\n");
  }
  // Each prompt counts once.
  EXPECT_EQ(
      writer->end(1, finished()),
      kText +
          R"([{"index":1,"text":"","logprobs":null,"finish_reason":"length"}],)"
          R"("usage":{"prompt_tokens":12,"completion_tokens":8,)"
          R"("total_tokens":20,"prompt_tokens_details":{"cached_tokens":8},)"
          R"("completion_tokens_details":{"reasoning_tokens":0}}})"
          "\n\ndata: [DONE]\n\n");
}

TEST(AnswerWriter, WholeAnswerHasItsChoicesInOrder) {
  AnswerOptions options;
  options.choices_per_prompt = 2;
  const auto writer = chat_writer(options);
  writer->delta(1, {{}, "b"});
  EXPECT_EQ(writer->end(1, finished()), "");
  writer->delta(0, {{}, "a"});
  const std::string body = writer->end(0, finished());
  EXPECT_NE(
      body.find(
          R"("choices":[{"index":0,"message":{"role":"assistant",)"
          R"("content":"a"},"finish_reason":"length"},{"index":1,"message":)"
          R"({"role":"assistant","content":"b"},"finish_reason":"length"}])"),
      std::string::npos)
      << body;
}

TEST(AnswerWriter, EachChoiceOfAChatBeginsWithItsRole) {
  AnswerOptions options = streamed();
  options.choices_per_prompt = 2;
  const std::string begun = chat_writer(options)->begin();
  for (const char* const index : {"0", "1"}) {
    EXPECT_NE(
        begun.find(
            "{\"index\":" + std::string(index) +
            R"(,"delta":{"role":"assistant","content":""})"),
        std::string::npos);
  }
}

TEST(AnswerWriter, ProgressIsToldWhenAskedFor) {
  const PrefillStep step = {100, 20, 60, 12.7, {}};
  EXPECT_EQ(chat_writer(streamed())->prefill(0, step), "");
  AnswerOptions options = streamed();
  options.return_progress = true;
  EXPECT_EQ(
      chat_writer(options)->prefill(0, step),
      kChat +
          R"([{"index":0,"delta":{},"finish_reason":null}],"prompt_progress":)"
          R"({"total":100,"cache":20,"processed":60,"time_ms":12}})"
          "\n\n");
}

TEST(AnswerWriter, TextThatIsNotUtf8IsReplaced) {
  const auto writer = chat_writer(streamed());
  const std::string event = writer->delta(0, {{}, "a\xff"});
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

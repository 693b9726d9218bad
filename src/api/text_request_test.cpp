#include "api/text_request.h"

#include <gtest/gtest.h>

#include "api/testing/fake_served_model.h"

namespace ingle {
namespace {

const ServedModel kModel = make_fake_model();

std::string body_of(const Result<std::string>& result) {
  return result.is_ok() ? *result : result.status().message();
}

TEST(Tokenize, GivesIds) {
  EXPECT_EQ(
      body_of(tokenize(R"({"content":"ab</s>"})", kModel)),
      R"({"tokens":[97,98,257]})");
  EXPECT_EQ(
      body_of(tokenize(R"({"content":"a","add_special":true})", kModel)),
      R"({"tokens":[256,97]})");
  EXPECT_EQ(body_of(tokenize(R"({"content":""})", kModel)), R"({"tokens":[]})");
}

TEST(Tokenize, PieceThatIsNoTextIsItsBytes) {
  EXPECT_EQ(
      body_of(
          tokenize("{\"content\":\"a\xc3\xa9\",\"with_pieces\":true}", kModel)),
      R"({"tokens":[{"id":97,"piece":"a"},{"id":195,"piece":[195]},)"
      R"({"id":169,"piece":[169]}]})");
}

TEST(Detokenize, GivesText) {
  EXPECT_EQ(
      body_of(detokenize(R"({"tokens":[104,105]})", kModel)),
      R"({"content":"hi"})");
}

TEST(ApplyTemplate, RendersAChatRequest) {
  EXPECT_EQ(
      body_of(apply_template(
          R"({"messages":[{"role":"user","content":"hi"}]})", kModel)),
      R"({"prompt":"<s>hello"})");
}

} // namespace
} // namespace ingle

#include "hub/url.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(Url, OriginIsSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://Hub.example/a/b?c"), "https://hub.example:443");
  EXPECT_EQ(origin_of("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
  EXPECT_EQ(origin_of("http://[::1]:80/x"), "http://[::1]:80");
}

TEST(Url, OriginIsThatOfTheHostThatIsAsked) {
  EXPECT_EQ(
      origin_of("https://hub.example@other.example/"),
      "https://other.example:443");
  EXPECT_EQ(
      origin_of("https://hub.example:secret@other.example/"),
      "https://other.example:443");
  EXPECT_NE(
      origin_of("https://hub.example.other.example/"),
      origin_of("https://hub.example/"));
  EXPECT_NE(
      origin_of("http://hub.example/"), origin_of("https://hub.example/"));
}

TEST(Url, OtherSchemesHaveNoOrigin) {
  for (const char* url : {"file:///etc/passwd", "ftp://a/b", "", "https://"}) {
    EXPECT_EQ(origin_of(url), std::nullopt) << url;
  }
}

TEST(Url, WordsAreEscaped) {
  EXPECT_EQ(escape_for_url("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(escape_for_url("a-b_c.d~e"), "a-b_c.d~e");
  EXPECT_EQ(escape_for_url("a b?#%"), "a%20b%3F%23%25");
  EXPECT_EQ(escape_for_url(""), "");
}

TEST(Url, SignatureIsNotShown) {
  EXPECT_EQ(shown_url("https://a/b?Signature=x"), "https://a/b");
}

} // namespace
} // namespace ingle

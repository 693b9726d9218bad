#include "text/json_scanner.h"

#include <optional>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ingle {
namespace {

// What a text comes to; nothing where it is no JSON, or more than one value.
std::optional<std::string> scan(std::string_view text) {
  while (text.ends_with(' ')) {
    text.remove_suffix(1);
  }
  JsonScanner scanner;
  std::string out;
  auto step = JsonScanner::Step::kMore;
  for (size_t i = 0; i < text.size(); ++i) {
    if (step != JsonScanner::Step::kMore) {
      return std::nullopt;
    }
    step = scanner.push(text[i], out);
  }
  const bool is_whole = step == JsonScanner::Step::kDone ||
      (step == JsonScanner::Step::kMore && scanner.is_whole());
  return is_whole ? std::optional(out) : std::nullopt;
}

TEST(JsonScanner, ValuesEndWhereTheyEnd) {
  JsonScanner number;
  std::string out;
  EXPECT_EQ(number.push('1', out), JsonScanner::Step::kMore);
  EXPECT_EQ(number.push('}', out), JsonScanner::Step::kPast);
  EXPECT_EQ(out, "1");
  JsonScanner object;
  out.clear();
  EXPECT_EQ(object.push('{', out), JsonScanner::Step::kMore);
  EXPECT_EQ(object.push('}', out), JsonScanner::Step::kDone);
  EXPECT_EQ(out, "{}");
}

TEST(JsonScanner, ControlCharactersInStringsAreEscaped) {
  EXPECT_EQ(scan("\"a\nb\x01\""), "\"a\\nb\\u0001\"");
  EXPECT_EQ(scan("[1,\n2]"), "[1,\n2]");
}

TEST(JsonScanner, DepthHasALimit) {
  const std::string deep(JsonScanner::kMaxDepth, '[');
  EXPECT_TRUE(scan(deep + std::string(deep.size(), ']')));
  EXPECT_FALSE(scan("[" + deep + std::string(deep.size() + 1, ']')));
}

TEST(JsonScanner, SurrogatesComeInPairs) {
  EXPECT_TRUE(scan(R"("\ud83d\uDE00\ufffd")"));
  for (const char* const text :
       {R"("\ud83d")",
        R"("\ud83dx")",
        R"("\ud83d\n")",
        R"("\ude00")",
        R"("\ud83d\ud83d")"}) {
    EXPECT_FALSE(scan(text)) << text;
  }
}

// nlohmann's parser is the truth; texts are JSON with a few changes.
TEST(JsonScanner, TakesWhatAParserTakes) {
  const std::string seeds[] = {
      R"({"a": [1, -0.5e+3, true, null, "x\"\\\u00e9"], "b": {}})",
      R"([[], {"": false}, 0, 10, "é"])",
      R"(-12.50E-7)",
      R"(" ")"};
  constexpr std::string_view kChars = "{}[],:\"\\0123e.-+tfnu a";
  std::minstd_rand random(7);
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random() % 4];
    const unsigned changes = random() % 4;
    for (unsigned j = 0; j < changes; ++j) {
      const size_t at = random() % text.size();
      if (static_cast<unsigned char>(text[at]) < 0x80) {
        text[at] = kChars[random() % kChars.size()];
      }
    }
    const bool is_json = nlohmann::json::accept(text);
    taken += is_json ? 1 : 0;
    ASSERT_EQ(scan(text).has_value(), is_json) << text;
  }
  EXPECT_GT(taken, 5000);
}

} // namespace
} // namespace ingle

#include "weights/strict_json.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

std::string problem(std::string_view text) {
  const auto parsed = parse_strict_json(text, "f.json");
  EXPECT_TRUE(
      parsed.is_ok() || parsed.status().code() == StatusCode::kCorruption);
  return parsed.status().message();
}

TEST(StrictJson, ReadsWhatTheLibraryReads) {
  constexpr std::string_view kText =
      R"({"a":[1,-2,3.5,null,true,{"b":[]},"x"],"c":{"d":{"e":"\u00e9"}}})";
  EXPECT_EQ(*parse_strict_json(kText, "f"), nlohmann::json::parse(kText));
  EXPECT_EQ(*parse_strict_json(" 7 ", "f"), nlohmann::json(7));
}

TEST(StrictJson, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(
      problem(R"({"a":1,"b":{"a":1},"a":2})"),
      "f.json: JSON key 'a' stands twice");
}

TEST(StrictJson, RefusesDeepNesting) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(problem(nested(kMaxJsonDepth)), "");
  EXPECT_EQ(
      problem(nested(kMaxJsonDepth + 1)), "f.json: JSON is nested too deeply");
  EXPECT_EQ(
      problem(std::string(1'000'000, '[')),
      "f.json: JSON is nested too deeply");
}

TEST(StrictJson, RefusesWhatIsNotJson) {
  for (const std::string_view text :
       {"", "{", "{\"a\"}", "[1,]", "1 2", "{\"\xff\":1}", "nul", "1e999"}) {
    EXPECT_NE(problem(text).find("not valid JSON"), std::string::npos) << text;
  }
}

} // namespace
} // namespace ingle

#include "api/json_reader.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

std::string failure(std::string_view text) {
  return parse_json(text).status().message();
}

TEST(JsonReader, KeepsTheOrderOfKeys) {
  const auto json = parse_json(R"({"z":1,"a":[2.5,null,true],"m":{"b":"c"}})");
  ASSERT_TRUE(json.is_ok());
  EXPECT_EQ(to_text(*json), R"({"z":1,"a":[2.5,null,true],"m":{"b":"c"}})");
}

TEST(JsonReader, RefusesWhatIsNotOneJsonValue) {
  for (const char* text : {"", "{", "{} x", "{\"a\":}", "nul", "[1,]", "'a'"}) {
    const auto json = parse_json(text);
    ASSERT_FALSE(json.is_ok()) << text;
    EXPECT_EQ(json.status().code(), StatusCode::kInvalidRequest) << text;
  }
}

TEST(JsonReader, RefusesTextThatIsNotUtf8) {
  EXPECT_NE(
      failure("\"\xff\"").find("syntax error at byte"), std::string::npos);
  EXPECT_NE(failure(R"("\ud800")").find("syntax error"), std::string::npos);
}

TEST(JsonReader, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(
      failure(R"({"a":1,"b":{"a":2},"a":3})"),
      R"(the body: expected one JSON value in UTF-8, got the key "a" twice in )"
      "one object");
}

TEST(JsonReader, KeyInAMessageIsEscapedAndCut) {
  const std::string key(5000, 'k');
  const std::string message =
      failure("{\"\\n\\u001b" + key + "\":1,\"\\n\\u001b" + key + "\":1}");
  EXPECT_LT(message.size(), 300u);
  EXPECT_NE(message.find(R"(the key "\x0a\x1bkkk)"), std::string::npos);
  EXPECT_NE(message.find("kkk...\" twice"), std::string::npos);
}

TEST(JsonReader, DepthIsLimited) {
  const std::string at_limit = std::string(kMaxRequestDepth, '[') + //
      std::string(kMaxRequestDepth, ']');
  EXPECT_TRUE(parse_json(at_limit).is_ok());
  EXPECT_FALSE(parse_json("[" + at_limit + "]").is_ok());
  EXPECT_FALSE(parse_json(std::string(1000000, '[')).is_ok());
}

TEST(JsonReader, NumberOfValuesIsLimited) {
  std::string text = "[0";
  for (size_t i = 0; i < kMaxRequestValues; ++i) {
    text += ",0";
  }
  EXPECT_FALSE(parse_json(text + "]").is_ok());
}

TEST(JsonReader, ManyKeysTakeNoQuadraticTime) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 50000; ++i) {
    text += ",\"" + std::to_string(i) + "\":0";
  }
  EXPECT_TRUE(parse_json(text + "}").is_ok());
}

TEST(JsonObject, NullIsAbsent) {
  const auto json = parse_json(R"({"a":null})");
  const auto object = JsonObject::from(*json, "");
  EXPECT_EQ(object->find("a"), nullptr);
  EXPECT_EQ(*object->get_integer("a", 0, 9), std::nullopt);
  EXPECT_EQ(*object->get_string("b"), std::nullopt);
}

TEST(JsonObject, NothingIsCoerced) {
  const auto json = parse_json(
      R"({"n":"1","f":1.0,"big":18446744073709551615,"b":1,"s":1,"x":2.5})");
  const auto object = JsonObject::from(*json, "outer");
  EXPECT_EQ(
      object->get_integer("n", 0, 9).status().message(),
      "outer.n: expected an integer from 0 to 9, got a string");
  EXPECT_EQ(
      object->get_integer("f", 0, 9).status().message(),
      "outer.f: expected an integer from 0 to 9, got 1.0");
  EXPECT_EQ(
      object->get_integer("big", 0, 9).status().message(),
      "outer.big: expected an integer from 0 to 9, got 18446744073709551615");
  EXPECT_EQ(
      object->get_bool("b").status().message(),
      "outer.b: expected a boolean, got a number");
  EXPECT_EQ(
      object->get_string("s").status().message(),
      "outer.s: expected a string, got a number");
  EXPECT_EQ(
      object->get_number("x", 0, 2).status().message(),
      "outer.x: expected a number from 0 to 2, got 2.5");
  EXPECT_EQ(object->get_bool("b").status().where(), "outer.b");
}

} // namespace
} // namespace ingle

#include "api/chat_tools.h"

#include <gtest/gtest.h>

#include "api/json_reader.h"

namespace ingle {
namespace {

ChatTools read(const std::string& fields) {
  const auto body = parse_json("{" + fields + "}");
  EXPECT_TRUE(body.is_ok());
  const auto object = JsonObject::from(*body, "");
  const auto tools = read_chat_tools(*object);
  EXPECT_TRUE(tools.is_ok()) << tools.status().message();
  return tools.is_ok() ? *tools : ChatTools();
}

// A tool f with the parameter p of this schema.
std::string tool(const std::string& schema) {
  return R"("tools":[{"type":"function","function":{"name":"f",)"
         R"("parameters":{"type":"object","properties":{"p":)" +
      schema + "}}}}]";
}

TEST(ChatTools, PassThroughInTheirOrder) {
  const std::string list =
      R"([{"type":"function","function":{"name":"g","description":"d"}},)"
      R"({"type":"function","function":{"name":"f"}}])";
  const ChatTools tools = read("\"tools\":" + list);
  EXPECT_EQ(tools.definitions, list);
  ASSERT_NE(tools.signatures, nullptr);
  EXPECT_EQ(tools.signatures->size(), 2U);
  EXPECT_TRUE(tools.choice.allows_several);
}

TEST(ChatTools, ChoiceNoneHidesThem) {
  const ChatTools tools = read(tool("{}") + R"(,"tool_choice":"none")");
  EXPECT_EQ(tools.definitions, "");
  EXPECT_EQ(tools.signatures, nullptr);
  EXPECT_EQ(read(R"("tools":[])").signatures, nullptr);
  EXPECT_NE(read(tool("{}") + R"(,"tool_choice":"auto")").signatures, nullptr);
}

TEST(ChatTools, ParallelCallsMayBeSwitchedOff) {
  EXPECT_FALSE(read(R"("parallel_tool_calls":false)").choice.allows_several);
  EXPECT_TRUE(read(R"("parallel_tool_calls":true)").choice.allows_several);
}

TEST(ChatTools, ParametersHaveTheTypesOfTheirSchema) {
  const auto types = [](const std::string& schema) {
    return read(tool(schema)).signatures->at("f").at("p");
  };
  EXPECT_EQ(types(R"({"type":"string"})"), kJsonString);
  EXPECT_EQ(types(R"({"type":"integer"})"), kJsonNumber);
  EXPECT_EQ(types(R"({"type":["string","null"]})"), kJsonString | kJsonNull);
  EXPECT_EQ(
      types(R"({"anyOf":[{"type":"string"},{"type":"null"}]})"),
      kJsonString | kJsonNull);
  EXPECT_EQ(types(R"({"enum":["a",1]})"), kJsonString | kJsonNumber);
  EXPECT_EQ(types(R"({"const":"a"})"), kJsonString);
  EXPECT_EQ(types(R"({"type":"string","enum":["1","2"]})"), kJsonString);
  // What says nothing, or nothing that makes sense.
  for (const char* const schema :
       {"{}",
        "true",
        "[]",
        R"({"$ref":"#/x"})",
        R"({"type":7})",
        R"({"anyOf":{}})",
        R"({"type":"string","const":1})"}) {
    EXPECT_EQ(types(schema), kJsonAny) << schema;
  }
}

TEST(ChatTools, SchemaOfOtherShapesIsNoError) {
  for (const char* const parameters :
       {"null", "[]", "1", R"({"properties":[]})", R"({"properties":null})"}) {
    const ChatTools tools = read(
        R"("tools":[{"type":"function","function":{"name":"f",)"
        R"("parameters":)" +
        std::string(parameters) + "}}]");
    EXPECT_TRUE(tools.signatures->at("f").empty()) << parameters;
  }
}

} // namespace
} // namespace ingle

#include "cli/conversation.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(ConversationTest, QuestionsAndAnswersFollowTheSystemPrompt) {
  Conversation conversation;
  conversation.add_question("a");
  EXPECT_EQ(conversation.to_json(), R"([{"role":"user","content":"a"}])");
  conversation.add_answer("b");
  conversation.set_system("s");
  EXPECT_EQ(
      conversation.to_json(),
      R"([{"role":"system","content":"s"},{"role":"user","content":"a"},)"
      R"({"role":"assistant","content":"b"}])");
}

TEST(ConversationTest, DroppedQuestionIsAsIfNeverAsked) {
  Conversation conversation;
  conversation.add_question("a");
  conversation.drop_last();
  EXPECT_EQ(conversation.to_json(), "[]");
}

TEST(ConversationTest, ClearKeepsTheSystemPrompt) {
  Conversation conversation;
  conversation.set_system("s");
  conversation.add_question("a");
  conversation.clear();
  EXPECT_EQ(conversation.to_json(), R"([{"role":"system","content":"s"}])");
}

TEST(ConversationTest, BytesThatAreNoUtf8AreReplaced) {
  Conversation conversation;
  conversation.add_question("caf\xe9");
  EXPECT_EQ(
      conversation.to_json(), "[{\"role\":\"user\",\"content\":\"caf�\"}]");
}

} // namespace
} // namespace ingle

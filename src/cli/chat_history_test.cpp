#include "cli/chat_history.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_system_faulty.h"

namespace ingle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kFolder = "/history";
constexpr const char* kPath = "/history/chat_history";

class ChatHistoryTest : public testing::Test {
 protected:
  std::vector<std::string> kept() {
    return *ChatHistory(*fs_, kPath).load();
  }
  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

TEST_F(ChatHistoryTest, NoFileIsAnEmptyHistory) {
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(ChatHistoryTest, InputsComeBackAsTheyWereTyped) {
  ChatHistory history(*fs_, kPath);
  const std::vector<std::string> inputs = {
      "one", "two\nlines\t", "gr\u00fcn \\ \"\u00fcber\"", "\U0001f642"};
  for (const std::string& input : inputs) {
    ASSERT_TRUE(history.add(input).is_ok());
  }
  EXPECT_EQ(kept(), inputs);
  EXPECT_THAT(
      *fs_->list(kFolder), ElementsAre("chat_history", "chat_history.lock"));
}

TEST_F(ChatHistoryTest, SeveralChatsAddToOneHistory) {
  ChatHistory first(*fs_, kPath);
  ChatHistory second(*fs_, kPath);
  ASSERT_TRUE(first.add("a").is_ok());
  ASSERT_TRUE(second.add("b").is_ok());
  ASSERT_TRUE(first.add("c").is_ok());
  EXPECT_THAT(kept(), ElementsAre("a", "b", "c"));
}

TEST_F(ChatHistoryTest, ChatsThatAddAtOnceLoseNothing) {
  constexpr int kInputs = 40;
  const std::vector<std::string> names = {"a", "b", "c"};
  std::vector<std::thread> chats;
  for (const std::string& name : names) {
    chats.emplace_back([&, name] {
      ChatHistory history(*fs_, kPath);
      for (int i = 0; i < kInputs; ++i) {
        const Status added = history.add(name + std::to_string(i));
        EXPECT_TRUE(added.is_ok()) << added.message();
      }
    });
  }
  for (std::thread& chat : chats) {
    chat.join();
  }
  const auto inputs = kept();
  EXPECT_EQ(inputs.size(), names.size() * kInputs);
  for (const std::string& name : names) {
    int next = 0; // of this chat's inputs, which stand in their order
    for (const std::string& input : inputs) {
      next += input == name + std::to_string(next) ? 1 : 0;
    }
    EXPECT_EQ(next, kInputs) << name;
  }
}

TEST_F(ChatHistoryTest, PartThatACrashLeftIsWrittenOver) {
  ASSERT_TRUE(fs_->create_directory(kFolder).is_ok());
  const std::string part = std::string(kPath) + ".part";
  ASSERT_TRUE(write_file(*fs_, part, as_bytes("\"half")).is_ok());
  ASSERT_TRUE(ChatHistory(*fs_, kPath).add("a").is_ok());
  EXPECT_THAT(kept(), ElementsAre("a"));
  EXPECT_FALSE(fs_->exists(part));
}

TEST_F(ChatHistoryTest, WhatIsEmptyRepeatedLargeOrNoTextIsNotKept) {
  ChatHistory history(*fs_, kPath);
  const std::string too_large(ChatHistory::kMaxInputBytes + 1, 'a');
  for (const std::string_view input :
       {"", "again", "again", too_large.c_str(), "a\xff"}) {
    ASSERT_TRUE(history.add(input).is_ok());
  }
  EXPECT_THAT(kept(), ElementsAre("again"));
}

TEST_F(ChatHistoryTest, KeepsTheLastInputs) {
  ChatHistory history(*fs_, kPath);
  for (size_t i = 0; i <= ChatHistory::kMaxInputs; ++i) {
    ASSERT_TRUE(history.add(std::to_string(i)).is_ok());
  }
  const auto inputs = kept();
  ASSERT_EQ(inputs.size(), ChatHistory::kMaxInputs);
  EXPECT_EQ(inputs.front(), "1");
  EXPECT_EQ(inputs.back(), std::to_string(ChatHistory::kMaxInputs));
}

TEST_F(ChatHistoryTest, LinesThatAreNotOursAreLeftOut) {
  ASSERT_TRUE(fs_->create_directory(kFolder).is_ok());
  constexpr std::string_view kText = "_HiStOrY_V2_\n\"a\"\n{}\n\"b\n\n\"c\"";
  ASSERT_TRUE(write_file(*fs_, kPath, as_bytes(kText)).is_ok());
  EXPECT_THAT(kept(), ElementsAre("a", "c"));
}

TEST_F(ChatHistoryTest, EveryFailureIsToldAndLeavesTheFileAsItWas) {
  ASSERT_TRUE(ChatHistory(*fs_, kPath).add("a").is_ok());
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    FaultyFileSystem faulty(*fs_, n, StatusCode::kNoSpace);
    const Status added = ChatHistory(faulty, kPath).add("b");
    failed = faulty.calls() >= n;
    EXPECT_EQ(added.is_ok(), !failed) << "call " << n;
    EXPECT_THAT(
        *fs_->list(kFolder), ElementsAre("chat_history", "chat_history.lock"));
    if (failed) {
      EXPECT_EQ(added.code(), StatusCode::kNoSpace);
      EXPECT_THAT(kept(), ElementsAre("a"));
    }
  }
  EXPECT_THAT(kept(), ElementsAre("a", "b"));
}

} // namespace
} // namespace ingle

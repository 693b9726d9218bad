#include "cli/chat_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

using Kind = ChatInput::Kind;
using testing::HasSubstr;

ChatInput input_of(const std::vector<std::string>& lines) {
  ChatInputReader reader;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(reader.add(lines[i]), i + 1 == lines.size()) << lines[i];
  }
  return reader.take();
}

TEST(ChatInputTest, OneLineIsAMessage) {
  const ChatInput input = input_of({"  What is it? "});
  EXPECT_EQ(input.kind, Kind::kMessage);
  EXPECT_EQ(input.text, "What is it?");
  EXPECT_FALSE(input.is_literal);
}

TEST(ChatInputTest, BlankLineIsNothing) {
  EXPECT_EQ(input_of({""}).kind, Kind::kNothing);
  EXPECT_EQ(input_of({" \t"}).kind, Kind::kNothing);
}

TEST(ChatInputTest, BackslashAtTheEndGoesOnInTheNextLine) {
  EXPECT_EQ(input_of({"one\\", "two\\", "three"}).text, "one\ntwo\nthree");
  EXPECT_EQ(input_of({"a \\ b"}).text, "a \\ b");
}

TEST(ChatInputTest, BlockGoesOnUntilItsQuotesCloseAndIsLiteral) {
  const ChatInput input = input_of(
      {"\"\"\"def f():", "", "  return \"\"", "@x\\", "/clear\"\"\" "});
  EXPECT_EQ(input.kind, Kind::kMessage);
  EXPECT_EQ(input.text, "def f():\n\n  return \"\"\n@x\\\n/clear");
  EXPECT_TRUE(input.is_literal);
}

TEST(ChatInputTest, BlockMayStandOnOneLineOrBetweenQuotesOfTheirOwn) {
  EXPECT_EQ(input_of({"\"\"\"/etc/hosts\"\"\""}).text, "/etc/hosts");
  EXPECT_EQ(input_of({"\"\"\"", "x", "\"\"\""}).text, "x");
  EXPECT_EQ(input_of({"\"\"\"\"\"\""}).kind, Kind::kNothing);
  // These open a block and don't close it.
  ChatInputReader reader;
  EXPECT_FALSE(reader.add("\"\"\""));
}

TEST(ChatInputTest, ReaderStartsOverAfterTakeAndClear) {
  ChatInputReader reader;
  EXPECT_FALSE(reader.add("\"\"\"x"));
  EXPECT_EQ(reader.typed(), "\"\"\"x");
  reader.clear();
  EXPECT_TRUE(reader.add("y"));
  EXPECT_EQ(reader.take().text, "y");
  EXPECT_TRUE(reader.add("z"));
  EXPECT_FALSE(reader.take().is_literal);
}

TEST(ChatInputTest, PastedLinesAreOneMessage) {
  EXPECT_EQ(input_of({"one\ntwo"}).text, "one\ntwo");
  EXPECT_EQ(input_of({"\"\"\"one\ntwo\"\"\""}).text, "one\ntwo");
}

TEST(ChatInputTest, SlashBeginsACommandWithItsArgument) {
  const ChatInput input = input_of({"/system  You are\\", "a poet. "});
  EXPECT_EQ(input.kind, Kind::kCommand);
  EXPECT_EQ(input.text, "system");
  EXPECT_EQ(input.argument, "You are\na poet.");
  EXPECT_EQ(input_of({"/clear"}).argument, "");
  EXPECT_EQ(input_of({"1/2"}).kind, Kind::kMessage);
}

class ChatFilesTest : public testing::Test {
 protected:
  ChatFilesTest() {
    add("/n/notes.txt", "Buy milk\n");
    add("/n/my list", "eggs");
    add("/n/notes.md", "# x");
    add("/homes/todo", "sleep");
  }
  void add(const std::string& path, std::string_view text) {
    ASSERT_TRUE(fs_->create_directory(parent_path(path)).is_ok());
    ASSERT_TRUE(write_file(*fs_, path, as_bytes(text)).is_ok());
  }
  std::string insert(std::string_view message) {
    auto text = insert_files(message, *fs_, "/homes");
    EXPECT_TRUE(text.is_ok()) << text.status().message();
    return text.is_ok() ? *text : "";
  }
  std::string refusal(std::string_view message) {
    const auto text = insert_files(message, *fs_, "/homes");
    EXPECT_EQ(text.status().code(), StatusCode::kInvalidRequest);
    return text.status().message();
  }
  std::string complete(std::string_view line) {
    return complete_chat_line(line, *fs_, "/homes", {"clear", "help", "hello"});
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

TEST_F(ChatFilesTest, FileIsPutAfterTheMessageThatNamesIt) {
  EXPECT_EQ(
      insert("Sum up @/n/notes.txt now"),
      "Sum up /n/notes.txt now\n\n/n/notes.txt:\n```\nBuy milk\n```");
  EXPECT_EQ(
      insert("@\"/n/my list\""), "/n/my list\n\n/n/my list:\n```\neggs\n```");
  EXPECT_EQ(insert("@~/todo"), "~/todo\n\n~/todo:\n```\nsleep\n```");
}

TEST_F(ChatFilesTest, FileThatIsNamedTwiceIsThereOnce) {
  const std::string text = insert("@/n/notes.txt and @/n/notes.txt");
  EXPECT_EQ(text.find("milk"), text.rfind("milk"));
}

TEST_F(ChatFilesTest, PunctuationOfTheSentenceIsNotPartOfThePath) {
  EXPECT_THAT(insert("What is in @/n/notes.txt?"), HasSubstr("milk"));
  EXPECT_THAT(insert("(see @/n/notes.txt)."), HasSubstr("notes.txt).\n\n"));
  add("/n/notes.txt?", "other");
  EXPECT_THAT(insert("What is in @/n/notes.txt?"), HasSubstr("other"));
}

TEST_F(ChatFilesTest, AtWithinAWordOrAloneStays) {
  for (const std::string text :
       {"write to me@example.org", "a @ b", "@", "x@/n/notes.txt", ""}) {
    EXPECT_EQ(insert(text), text);
  }
}

TEST_F(ChatFilesTest, FenceIsLongerThanThoseInTheFile) {
  add("/n/code.md", "```\nx\n```\n````");
  EXPECT_THAT(insert("@/n/code.md"), HasSubstr(":\n`````\n```\n"));
}

TEST_F(ChatFilesTest, WhatIsNoTextFileIsRefused) {
  EXPECT_THAT(refusal("@/n/absent"), HasSubstr("@/n/absent is not there"));
  EXPECT_THAT(refusal("see @/n"), HasSubstr("@/n is a folder"));
  add("/n/binary", std::string_view("a\0b", 3));
  EXPECT_THAT(refusal("@/n/binary"), HasSubstr("not UTF-8"));
  add("/n/latin", "caf\xe9");
  EXPECT_THAT(refusal("@/n/latin"), HasSubstr("not UTF-8"));
  add("/n/large", std::string(kMaxChatFileBytes + 1, 'x'));
  EXPECT_THAT(refusal("@/n/large"), HasSubstr("1048577 bytes"));
  add("/n/fits", std::string(kMaxChatFileBytes, 'x'));
  EXPECT_THAT(insert("@/n/fits"), HasSubstr("xxx"));
}

TEST_F(ChatFilesTest, PathIsCompletedAsFarAsThereIsOneWay) {
  EXPECT_EQ(complete("see @/n/no"), "tes.");
  EXPECT_EQ(complete("see @/n/notes.t"), "xt ");
  EXPECT_EQ(complete("@/hom"), "es/");
  EXPECT_EQ(complete("@~/t"), "odo ");
  EXPECT_EQ(complete("@\"/n/my"), " list\" ");
  EXPECT_EQ(complete("@/n/my"), "");
  EXPECT_EQ(complete("me@/n/no"), "");
  EXPECT_EQ(complete("@/absent/x"), "");
  EXPECT_EQ(complete("/n/no"), "");
}

TEST_F(ChatFilesTest, CommandIsCompleted) {
  EXPECT_EQ(complete("/c"), "lear ");
  EXPECT_EQ(complete("/h"), "el");
  EXPECT_EQ(complete("/x"), "");
  EXPECT_EQ(complete("/clear x"), "");
}

} // namespace
} // namespace ingle

// What a person types into a chat: lines that become messages and commands. No
// terminal and no model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

struct ChatInput {
  enum class Kind { kNothing, kMessage, kCommand };
  Kind kind = Kind::kNothing;
  std::string text; // the message, or the command's name without its slash
  std::string argument; // of a command
  // A message between """: an @ in it is an @.
  bool is_literal = false;
};

// Gathers lines until an input is whole. One that ends in a backslash goes on
// in the next line; one that starts with """ goes on until a line that ends
// with """; all others are whole.
class ChatInputReader {
 public:
  // True once the input is whole: take() it.
  bool add(std::string_view line);
  // The lines so far as they were typed, for the history.
  const std::string& typed() const {
    return typed_;
  }
  // The input, parsed; starts over.
  ChatInput take();
  void clear();

 private:
  enum class Part { kFirst, kNext, kBlock };
  Part part_ = Part::kFirst;
  bool is_literal_ = false;
  std::string text_;
  std::string typed_;
};

// What a file in a message may have. A model that reads more has a context of
// half a million tokens or so.
inline constexpr uint64_t kMaxChatFileBytes = uint64_t{1} << 20;

// The message with the files that it names: each word @path, or @"a path", is
// left without its @, and the file's text is put after the message. A path may
// begin with ~/ for `user_home`; punctuation that ends a word is not part of
// its path unless there is such a file.
//
// Errors: kInvalidRequest: a file that can't be read, is a folder, has more
//         than kMaxChatFileBytes or is not UTF-8 text.
Result<std::string> insert_files(
    std::string_view message,
    FileSystem& fs,
    const std::string& user_home);

// What can be added to a line that is being typed, at its end: the rest of a
// path after @, or of one of `commands` after the slash, as far as there is
// only one way to go on. Empty: nothing.
std::string complete_chat_line(
    std::string_view line,
    FileSystem& fs,
    const std::string& user_home,
    const std::vector<std::string>& commands);

} // namespace ingle

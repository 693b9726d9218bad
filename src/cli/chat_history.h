// What was typed in chats, kept in a file for the next one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

// The file has one input a line, as a JSON string, the newest last, mode 0600.
// Several chats may add to it at once, of several processes: each input is
// kept, in the order of its chat. They take turns by a lock on `path`.lock,
// which stays, empty; a turn takes milliseconds.
//
// Threads: one.
// Crash:   the file is replaced by a rename; what a crash leaves beside it,
//          `path`.part, is written over and renamed by the next to add.
class ChatHistory {
 public:
  static constexpr size_t kMaxInputs = 1000;
  // Larger ones are not kept: the file is read and written whole each time.
  static constexpr size_t kMaxInputBytes = size_t{64} << 10;

  ChatHistory(FileSystem& fs, std::string path);

  // Oldest first; no file is an empty history. Lines that are no JSON string
  // are left out. Errors: those of FileSystem::read but kNotFound.
  Result<std::vector<std::string>> load() const;

  // Waits for the others' turns. Nothing changes where `text` is empty, too
  // large, no UTF-8, or the newest already.
  // Errors: those of load(), locking and writing; the file is as it was then.
  Status add(std::string_view text);

 private:
  FileSystem& fs_;
  const std::string path_;
};

} // namespace ingle

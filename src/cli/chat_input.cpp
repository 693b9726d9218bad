#include "cli/chat_input.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/utf8.h"

namespace ingle {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kBlanks = " \t\n";

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

bool is_blank(char c) {
  return kBlanks.find(c) != std::string_view::npos;
}

// A word @path of a message: [begin, end), its @ and quotes included.
struct FileWord {
  size_t begin = 0;
  size_t end = 0;
  std::string path;
  bool is_quoted = false;
};

std::optional<FileWord> file_word_at(std::string_view text, size_t at) {
  if (text[at] != '@' || (at > 0 && !is_blank(text[at - 1]))) {
    return std::nullopt;
  }
  FileWord word{at, at + 1, {}, false};
  if (word.end < text.size() && text[word.end] == '"') {
    const size_t close = text.find('"', word.end + 1);
    if (close != std::string_view::npos) {
      word.path = text.substr(word.end + 1, close - word.end - 1);
      word.end = close + 1;
      word.is_quoted = true;
      return word.path.empty() ? std::nullopt : std::optional(word);
    }
  }
  while (word.end < text.size() && !is_blank(text[word.end])) {
    ++word.end;
  }
  word.path = text.substr(at + 1, word.end - at - 1);
  return word.path.empty() ? std::nullopt : std::optional(word);
}

std::string with_home(const std::string& path, const std::string& user_home) {
  return path.starts_with("~/") ? join_path(user_home, path.substr(2)) : path;
}

// Takes the punctuation of the sentence off the word where that finds a file.
void fit_to_file(FileWord& word, FileSystem& fs, const std::string& user_home) {
  if (word.is_quoted) {
    return;
  }
  std::string path = word.path;
  while (!path.empty() && !fs.exists(with_home(path, user_home))) {
    if (std::string_view(".,;:!?)]}'\"").find(path.back()) ==
        std::string_view::npos) {
      return;
    }
    path.pop_back();
  }
  if (!path.empty()) {
    word.end -= word.path.size() - path.size();
    word.path = std::move(path);
  }
}

Status refuse(const std::string& path, const std::string& why) {
  return Status::invalid_request(
      "@" + path + " " + why + "; an @ that names no file goes between \"\"\"");
}

Result<std::string> read_text(
    FileSystem& fs,
    const std::string& path,
    const std::string& user_home) {
  const std::string real_path = with_home(path, user_home);
  const auto info = fs.stat(real_path);
  if (!info.is_ok()) {
    return info.status().code() == StatusCode::kNotFound
        ? refuse(path, "is not there")
        : refuse(path, "can't be read: " + info.status().message());
  }
  if (info->is_directory) {
    return refuse(path, "is a folder");
  }
  if (info->size > kMaxChatFileBytes) {
    return refuse(
        path,
        "has " + std::to_string(info->size) + " bytes, and at most " +
            std::to_string(kMaxChatFileBytes) + " fit into a message");
  }
  auto text = fs.read(real_path);
  if (!text.is_ok()) {
    return refuse(path, "can't be read: " + text.status().message());
  }
  if (text->find('\0') != std::string::npos || !is_utf8(*text)) {
    return refuse(path, "is not UTF-8 text");
  }
  return text;
}

// A fence that the text itself doesn't have.
std::string fence_for(std::string_view text) {
  size_t longest = 2;
  size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

std::string common_prefix(const std::vector<std::string>& names) {
  std::string prefix = names.empty() ? "" : names.front();
  for (const auto& name : names) {
    const auto [end, unused] =
        std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end());
    prefix.erase(end, prefix.end());
  }
  // Not within a character.
  while (!prefix.empty() && !is_utf8(prefix)) {
    prefix.pop_back();
  }
  return prefix;
}

std::vector<std::string> starting_with(
    std::vector<std::string> names,
    std::string_view start) {
  std::erase_if(names, [&](const std::string& name) {
    // Hidden files are for those who ask for them.
    return !name.starts_with(start) || (start.empty() && name.starts_with('.'));
  });
  return names;
}

// What comes after `start`, which one or more of `names` begin with.
std::string rest_of(
    const std::vector<std::string>& names,
    std::string_view start) {
  const std::string prefix = common_prefix(names);
  return prefix.size() > start.size() ? prefix.substr(start.size()) : "";
}

std::string complete_path(
    std::string_view typed,
    FileSystem& fs,
    const std::string& user_home,
    bool is_quoted) {
  const size_t slash = typed.rfind('/');
  const std::string folder = slash == std::string_view::npos
      ? "."
      : parent_path(
            with_home(std::string(typed.substr(0, slash + 1)), user_home));
  const std::string_view start =
      slash == std::string_view::npos ? typed : typed.substr(slash + 1);
  auto names = fs.list(folder);
  if (!names.is_ok()) {
    return {};
  }
  const auto found = starting_with(std::move(names).value(), start);
  std::string rest = rest_of(found, start);
  if (!is_quoted && rest.find_first_of(kBlanks) != std::string::npos) {
    return {}; // it would end the word
  }
  if (found.size() == 1) {
    const auto info = fs.stat(join_path(folder, found.front()));
    const bool is_folder = info.is_ok() && info->is_directory;
    rest += is_folder ? "/" : is_quoted ? "\" " : " ";
  }
  return rest;
}

} // namespace

bool ChatInputReader::add(std::string_view line) {
  typed_ += typed_.empty() ? "" : "\n";
  typed_ += line;
  if (part_ == Part::kFirst) {
    const std::string_view start = trim(line);
    if (start.starts_with(kQuotes)) {
      part_ = Part::kBlock;
      is_literal_ = true;
      line = start.substr(kQuotes.size());
    }
  } else {
    text_ += '\n';
  }
  if (part_ == Part::kBlock) {
    const size_t end = line.find_last_not_of(" \t") + 1;
    const bool closes = line.substr(0, end).ends_with(kQuotes);
    text_ += closes ? line.substr(0, end - kQuotes.size()) : line;
    return closes;
  }
  if (line.ends_with('\\')) {
    part_ = Part::kNext;
    line.remove_suffix(1);
    text_ += line;
    return false;
  }
  text_ += line;
  return true;
}

ChatInput ChatInputReader::take() {
  ChatInput input;
  const std::string_view text = trim(text_);
  input.is_literal = is_literal_;
  if (text.empty()) {
    input.kind = ChatInput::Kind::kNothing;
  } else if (text.starts_with('/') && !is_literal_) {
    input.kind = ChatInput::Kind::kCommand;
    const size_t end = std::min(text.find_first_of(kBlanks), text.size());
    input.text = text.substr(1, end - 1);
    input.argument = trim(text.substr(end));
  } else {
    input.kind = ChatInput::Kind::kMessage;
    input.text = text;
  }
  clear();
  return input;
}

void ChatInputReader::clear() {
  *this = {};
}

Result<std::string> insert_files(
    std::string_view message,
    FileSystem& fs,
    const std::string& user_home) {
  std::string text;
  std::string files;
  std::set<std::string> inserted;
  size_t at = 0;
  while (at < message.size()) {
    auto word = file_word_at(message, at);
    if (!word) {
      text += message[at++];
      continue;
    }
    fit_to_file(*word, fs, user_home);
    INGLE_ASSIGN_OR_RETURN(
        const auto content, read_text(fs, word->path, user_home));
    text += word->path;
    if (inserted.insert(word->path).second) {
      const std::string fence = fence_for(content);
      files += "\n\n" + word->path + ":\n" + fence + "\n" + content;
      files += content.empty() || content.ends_with('\n') ? "" : "\n";
      files += fence;
    }
    at = word->end;
  }
  return text + files;
}

std::string complete_chat_line(
    std::string_view line,
    FileSystem& fs,
    const std::string& user_home,
    const std::vector<std::string>& commands) {
  if (line.starts_with('/') && line.find(' ') == std::string_view::npos) {
    const auto found = starting_with(commands, line.substr(1));
    return rest_of(found, line.substr(1)) + (found.size() == 1 ? " " : "");
  }
  // An open quote, or else the last word.
  const size_t quote = line.rfind("@\"");
  if (quote != std::string_view::npos &&
      (quote == 0 || is_blank(line[quote - 1])) &&
      line.find('"', quote + 2) == std::string_view::npos) {
    return complete_path(line.substr(quote + 2), fs, user_home, true);
  }
  const size_t blank = line.find_last_of(kBlanks);
  const std::string_view word =
      blank == std::string_view::npos ? line : line.substr(blank + 1);
  return word.starts_with('@')
      ? complete_path(word.substr(1), fs, user_home, false)
      : "";
}

} // namespace ingle

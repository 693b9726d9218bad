#include "cli/console.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <unistd.h>

namespace ingle {
namespace {

// How many bytes at `at` are a control character: C0, DEL, or one of U+0080 to
// U+009F; 0: none.
size_t control_length(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7F) {
    return 1;
  }
  const bool is_c1 = byte == 0xC2 && at + 1 < text.size() &&
      static_cast<unsigned char>(text[at + 1]) < 0xA0;
  return is_c1 ? 2 : 0;
}

// One line whatever a file's strings hold.
std::string printable(std::string_view text) {
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t length = control_length(text, i);
    if (length == 0) {
      line += text[i];
      continue;
    }
    for (const size_t end = i + length; i < end; ++i) {
      std::array<char, 8> escaped{};
      std::snprintf(
          escaped.data(),
          escaped.size(),
          "\\x%02x",
          static_cast<unsigned char>(text[i]));
      line += escaped.data();
    }
    --i;
  }
  return line;
}

} // namespace

bool print(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0;
}

bool print_line(std::string_view line) {
  std::string text(line);
  text += '\n';
  return print(text);
}

Status output_status() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0
      ? Status::ok()
      : Status::io("standard output can't be written");
}

int report(const Status& status) {
  std::fprintf(stderr, "ingle: %s\n", printable(status.message()).c_str());
  switch (status.code()) {
    case StatusCode::kInvalidRequest:
      return kUsage;
    case StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

void tell(std::string_view message) {
  std::fprintf(
      stderr,
      "%single: %s\n",
      isatty(STDERR_FILENO) == 0 ? "" : "\r\033[K",
      printable(message).c_str());
}

std::string safe_for_terminal(std::string_view text) {
  std::string safe;
  for (size_t i = 0; i < text.size();) {
    const size_t length = control_length(text, i);
    if (length == 0 || text[i] == '\n' || text[i] == '\t') {
      safe += text[i];
    }
    i += std::max<size_t>(length, 1);
  }
  return safe;
}

std::string human_bytes(double bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(
      text.data(),
      text.size(),
      unit == 0 ? "%.0f %s" : "%.1f %s",
      bytes,
      kUnits[unit]);
  return text.data();
}

std::string join(const std::vector<std::string>& words, std::string_view gap) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) {
      text += gap;
    }
    text += word;
  }
  return text;
}

} // namespace ingle

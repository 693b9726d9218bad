#include "fuzz/checks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/utf8.h"

namespace ingle {
namespace {

bool is_one_line(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

void check_words(const std::string& text, const char* what) {
  if (!is_one_line(text) || !is_utf8(text) || text.size() > kLongestMessage) {
    std::fprintf(stderr, "%zu bytes: %.3000s\n", text.size(), text.c_str());
    check(false, what);
  }
}

} // namespace

void check(bool holds, std::string_view what) {
  if (!holds) {
    std::fprintf(
        stderr,
        "does not hold: %.*s\n",
        static_cast<int>(what.size()),
        what.data());
    std::abort();
  }
}

void check_status(
    const Status& status,
    std::initializer_list<StatusCode> documented) {
  if (status.is_ok()) {
    return;
  }
  const bool is_documented =
      std::find(documented.begin(), documented.end(), status.code()) !=
      documented.end();
  if (!is_documented) {
    const std::string_view code = to_string(status.code());
    std::fprintf(
        stderr,
        "%.*s: %.3000s\n",
        static_cast<int>(code.size()),
        code.data(),
        status.message().c_str());
  }
  check(is_documented, "a failure has a documented code");
  check(!status.message().empty(), "a failure has a message");
  check_words(status.message(), "a message is one line of UTF-8, not long");
  check_words(status.where(), "a place is one line of UTF-8, not long");
  check_words(status.reason(), "a reason is one line of UTF-8, not long");
}

} // namespace ingle

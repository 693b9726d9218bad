#include "cli/console.h"

#include <array>
#include <cstdio>

namespace ingle {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void print_line(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  print("\n");
}

int report(const Status& status) {
  std::fprintf(stderr, "ingle: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidRequest ? 2 : 1;
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

} // namespace ingle

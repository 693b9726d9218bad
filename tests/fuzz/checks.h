// What the fuzz targets check of every result. A check that does not hold ends
// the process, and libFuzzer keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/status.h"

namespace ingle {

// No honest message is longer.
inline constexpr size_t kLongestMessage = 2000; // bytes

void check(bool holds, std::string_view what);

// `code` is ok or stands in `documented`, and the message is one line of
// UTF-8, neither empty nor long.
void check_status(
    const Status& status,
    std::initializer_list<StatusCode> documented);

inline std::string_view input_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

} // namespace ingle

// What libFuzzer calls with each input, and once before them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

#include "http/request_id.h"

#include <cstdint>
#include <random>

namespace ingle {

std::string make_request_id() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;
  std::string id;
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) {
    if (i % 8 == 0) {
      bits = random();
    }
    uint32_t digit = bits & 0xf;
    bits >>= 4;
    if (i == 12) {
      digit = 4; // version
    } else if (i == 16) {
      digit = 8 | (digit & 3); // variant
    }
    if (i == 8 || i == 12 || i == 16 || i == 20) {
      id += '-';
    }
    id += kDigits[digit];
  }
  return id;
}

} // namespace ingle

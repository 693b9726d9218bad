#include "api/call_ids.h"

#include <cstdint>

namespace ingle {
namespace {

// FNV-1a.
uint32_t hash_of(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return hash;
}

std::string hex_of(uint32_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (int shift = 28; shift >= 0; shift -= 4) {
    hex += kDigits[(value >> shift) & 0xF];
  }
  return hex;
}

} // namespace

std::string hash_text(std::string_view text) {
  return hex_of(hash_of(text));
}

std::string call_id(std::string_view answer_uuid, size_t choice, size_t call) {
  // An odd factor: a step that meets itself again after 2^32 of them.
  constexpr uint32_t kStep = 2654435761U;
  constexpr size_t kCallsOfAChoice = size_t{1} << 20;
  const auto number = static_cast<uint32_t>(choice * kCallsOfAChoice + call);
  return "call_" + hex_of(hash_of(answer_uuid) + number * kStep);
}

} // namespace ingle

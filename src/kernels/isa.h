// Which instruction sets there are, and which one this process uses.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace ingle {

enum class Isa {
  kPortable, // plain C++: the oracle of the others
  kNeon, // with the dot product of Armv8.2
  kAvx2, // with FMA and F16C
  kAvx512, // F, BW, VL, DQ and VNNI
};

// "portable", "neon", "avx2", "avx512".
std::string_view to_string(Isa isa);

// Those that this program has kernels for and this processor can run, from the
// slowest to the quickest. Never empty.
std::vector<Isa> supported_isas();

// The quickest, or the one that `wanted` names; an empty `wanted` names none.
// Errors: kInvalidRequest (no such name, or this processor lacks it).
Result<Isa> choose_isa(std::string_view wanted);

} // namespace ingle

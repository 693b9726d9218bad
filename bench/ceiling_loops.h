// What an instruction set multiplies at most: loops over registers alone, of
// the instructions that its kernels use.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace ingle {

// Threads: any.
struct CeilingLoops {
  // Each goes round so many times and returns how many multiplications and
  // additions that were.
  double (*i8)(int64_t rounds); // dot products of weights below 8 bits
  double (*i16)(int64_t rounds);
  double (*f32)(int64_t rounds);
};

// Requires: `isa` is one of supported_isas().
const CeilingLoops& ceiling_loops(Isa isa);

// Each is there where the build has ceiling_loops_<isa>.cpp: by processor.
const CeilingLoops& portable_ceiling_loops();
const CeilingLoops& neon_ceiling_loops();
const CeilingLoops& avx2_ceiling_loops();
const CeilingLoops& avx512_ceiling_loops();

} // namespace ingle

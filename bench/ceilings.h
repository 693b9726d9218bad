// What the machine gives a pool's threads together, measured now.
#pragma once

#include <cstddef>

#include "kernels/isa.h"
#include "kernels/thread_pool.h"

namespace ingle {

struct Ceilings {
  double read_gb_s = 0; // a stream from memory
  double i8_gop_s = 0; // multiplications and additions in registers
  double i16_gop_s = 0;
  double f32_gop_s = 0;
};

// Reads `memory` bytes, which should be more than caches hold. Best of a few
// rounds; takes less than a second.
Ceilings measure_ceilings(ThreadPool& pool, Isa isa, size_t memory);

} // namespace ingle

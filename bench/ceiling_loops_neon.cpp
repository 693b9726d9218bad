#include "ceiling_loops_impl.h"
#include "kernels/simd_neon.h"

namespace ingle {

const CeilingLoops& neon_ceiling_loops() {
  static constexpr CeilingLoops kLoops = make_ceiling_loops<NeonSimd>();
  return kLoops;
}

} // namespace ingle

#include "ceiling_loops_impl.h"
#include "kernels/simd_avx2.h"

namespace ingle {

const CeilingLoops& avx2_ceiling_loops() {
  static constexpr CeilingLoops kLoops = make_ceiling_loops<Avx2Simd>();
  return kLoops;
}

} // namespace ingle

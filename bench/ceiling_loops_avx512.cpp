#include "ceiling_loops_impl.h"
#include "kernels/simd_avx512.h"

namespace ingle {

const CeilingLoops& avx512_ceiling_loops() {
  static constexpr CeilingLoops kLoops = make_ceiling_loops<Avx512Simd>();
  return kLoops;
}

} // namespace ingle

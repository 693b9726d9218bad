#include "ceiling_loops_impl.h"
#include "kernels/simd_portable.h"

namespace ingle {

const CeilingLoops& portable_ceiling_loops() {
  static constexpr CeilingLoops kLoops = make_ceiling_loops<PortableSimd>();
  return kLoops;
}

} // namespace ingle

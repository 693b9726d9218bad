#include "kernels/kernel_sets.h"
#include "kernels/kernels_impl.h"
#include "kernels/simd_neon.h"

namespace ingle {

const KernelSet& neon_kernels() {
  static constexpr KernelSet kSet = make_kernel_set<NeonSimd>(Isa::kNeon);
  return kSet;
}

} // namespace ingle

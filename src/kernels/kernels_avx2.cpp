#include "kernels/kernel_sets.h"
#include "kernels/kernels_impl.h"
#include "kernels/simd_avx2.h"

namespace ingle {

const KernelSet& avx2_kernels() {
  static constexpr KernelSet kSet = make_kernel_set<Avx2Simd>(Isa::kAvx2);
  return kSet;
}

} // namespace ingle

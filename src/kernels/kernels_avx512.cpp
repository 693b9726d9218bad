#include "kernels/kernel_sets.h"
#include "kernels/kernels_impl.h"
#include "kernels/simd_avx512.h"

namespace ingle {

const KernelSet& avx512_kernels() {
  static constexpr KernelSet kSet = make_kernel_set<Avx512Simd>(Isa::kAvx512);
  return kSet;
}

} // namespace ingle

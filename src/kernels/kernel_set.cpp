#include "kernels/kernel_set.h"

#include "kernels/kernel_sets.h"

namespace ingle {

const KernelSet& kernel_set(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return avx2_kernels();
    case Isa::kAvx512:
      return avx512_kernels();
#endif
#if defined(__aarch64__)
    case Isa::kNeon:
      return neon_kernels();
#endif
    default:
      return portable_kernels();
  }
}

} // namespace ingle

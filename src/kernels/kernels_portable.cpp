#include "kernels/kernel_sets.h"
#include "kernels/kernels_impl.h"
#include "kernels/simd_portable.h"

namespace ingle {

const KernelSet& portable_kernels() {
  static constexpr KernelSet kSet =
      make_kernel_set<PortableSimd>(Isa::kPortable);
  return kSet;
}

} // namespace ingle

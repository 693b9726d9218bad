// Each is there where the build has kernels_<isa>.cpp: by processor.
#pragma once

#include "kernels/kernel_set.h"

namespace ingle {

const KernelSet& portable_kernels();
const KernelSet& neon_kernels();
const KernelSet& avx2_kernels();
const KernelSet& avx512_kernels();

} // namespace ingle

// What a model has to run on the CPU kernels.
#pragma once

#include <memory>

#include "kernels/arena.h"
#include "kernels/layer.h"
#include "kernels/thread_pool.h"
#include "model/numerics.h"
#include "model/output_buffers.h"

namespace ingle {

// Threads: the engine thread.
class CpuKernels {
 public:
  // Requires: uses_kernels(numerics), and `isa` is one of supported_isas().
  CpuKernels(Isa isa, int threads, Numerics numerics)
      : pool_(threads),
        context_{
            kernel_set(isa),
            pool_,
            numerics == Numerics::kFast ? Inputs::kOnePlane
                                        : Inputs::kTwoPlanes} {}

  ThreadPool& pool() {
    return pool_;
  }
  KernelContext& context() {
    return context_;
  }
  OutputBuffers& outputs() {
    return *outputs_;
  }
  // Of the packed weights.
  Arena& arena() {
    return arena_;
  }

 private:
  ThreadPool pool_;
  KernelContext context_;
  Arena arena_;
  std::shared_ptr<OutputBuffers> outputs_ = std::make_shared<OutputBuffers>();
};

} // namespace ingle

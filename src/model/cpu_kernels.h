// What a model has to run on the CPU kernels.
#pragma once

#include <vector>

#include <mlx/array.h>

#include "base/stopwatch.h"
#include "kernels/arena.h"
#include "kernels/layer.h"
#include "kernels/thread_pool.h"
#include "model/numerics.h"

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
  // Gets the time of what is evaluated from now on; null: nobody does.
  void set_stopwatch(Stopwatch* stopwatch) {
    stopwatch_ = stopwatch;
  }
  // fn(), which computes.
  template <class Fn>
  void evaluate(Fn&& fn) {
    time_with(stopwatch_, fn);
  }
  // [rows, columns] in f32, to be filled. An array that nobody has any more is
  // given again: in a step of one token, to make and drop one for each layer
  // takes a percent of the time, and in one of many tokens, fresh pages do.
  mlx::core::array output(int rows, int columns);
  // Of the packed weights.
  Arena& arena() {
    return arena_;
  }

 private:
  ThreadPool pool_;
  KernelContext context_;
  Arena arena_;
  Stopwatch* stopwatch_ = nullptr;
  std::vector<mlx::core::array> given_; // of the shapes that a step has
};

} // namespace ingle

// Passes over the logits of one position, on all threads where there are many.
// What they give does not depend on the number of threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernel_set.h"
#include "kernels/thread_pool.h"

namespace ingle {

// Threads: the one that owns the pool. Throws std::bad_alloc.
class LogitPasses {
 public:
  static constexpr size_t kBlock = 256; // logits that are summed together

  // pool: outlives this; null: the caller's thread does all.
  LogitPasses(const KernelSet& set, ThreadPool* pool = nullptr)
      : set_(&set), pool_(pool) {}

  // The first of the largest; nothing where one is NaN or +inf, or none is
  // finite.
  std::optional<size_t> first_of_largest(std::span<const float> logits) const;

  // Σ exp((x - peak) * rate) over x >= floor, of each kBlock logits.
  // Requires: peak is the largest logit.
  std::vector<double> sums_of_blocks(
      std::span<const float> logits,
      float peak,
      float rate,
      float floor) const;

  // Σ exp(x - peak). Requires: peak is the largest logit.
  double exp_sum(std::span<const float> logits, float peak) const;

  // The same over x >= each floor.
  std::array<double, kFloors> exp_sums(
      std::span<const float> logits,
      float peak,
      std::span<const float, kFloors> floors) const;

  // The indices of those in [low, high), in order.
  std::vector<int32_t>
  find_between(std::span<const float> logits, float low, float high) const;

 private:
  template <class Fn>
  void for_parts(size_t count, Fn&& fn) const;

  const KernelSet* set_;
  ThreadPool* pool_;
};

} // namespace ingle

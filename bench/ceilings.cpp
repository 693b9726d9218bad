#include "ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "ceiling_loops.h"
#include "read_memory.h"

namespace ingle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr auto kLoopTime = std::chrono::milliseconds(10);

std::atomic<uint64_t> sink; // a sum that is not used would not be made

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double measure_reading(ThreadPool& pool, size_t memory) {
  constexpr size_t kStep = 32; // words: see read_memory()
  const auto threads = static_cast<size_t>(pool.threads());
  const size_t words = memory / sizeof(uint64_t) / threads / kStep * kStep;
  std::vector<std::vector<uint64_t>> parts(threads);
  pool.run([&](int thread) { // written by the one that reads it
    parts[static_cast<size_t>(thread)].assign(words, 1);
  });
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    pool.run([&](int thread) {
      sink += read_memory(parts[static_cast<size_t>(thread)]);
    });
    const auto bytes = static_cast<double>(threads * words * sizeof(uint64_t));
    best = std::max(best, bytes / seconds_since(start));
  }
  return best / 1e9;
}

double measure_loop(ThreadPool& pool, double (*loop)(int64_t)) {
  constexpr int64_t kAtOnce = 1000;
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> rates(static_cast<size_t>(pool.threads()));
    pool.run([&](int thread) {
      double operations = 0;
      const auto start = Clock::now();
      while (Clock::now() - start < kLoopTime) {
        operations += loop(kAtOnce);
      }
      rates[static_cast<size_t>(thread)] = operations / seconds_since(start);
    });
    double together = 0;
    for (const double rate : rates) {
      together += rate;
    }
    best = std::max(best, together);
  }
  return best / 1e9;
}

} // namespace

const CeilingLoops& ceiling_loops(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return avx2_ceiling_loops();
    case Isa::kAvx512:
      return avx512_ceiling_loops();
#endif
#if defined(__aarch64__)
    case Isa::kNeon:
      return neon_ceiling_loops();
#endif
    default:
      return portable_ceiling_loops();
  }
}

Ceilings measure_ceilings(ThreadPool& pool, Isa isa, size_t memory) {
  const ThreadPool::Step awake(pool);
  const CeilingLoops& loops = ceiling_loops(isa);
  return {
      .read_gb_s = measure_reading(pool, memory),
      .i8_gop_s = measure_loop(pool, loops.i8),
      .i16_gop_s = measure_loop(pool, loops.i16),
      .f32_gop_s = measure_loop(pool, loops.f32)};
}

} // namespace ingle

// Threads that work on one thing together.
//
// Workers wake up when a Step is opened and spin while it is, so that a region
// starts in well under a microsecond. They sleep about a millisecond after it
// is closed: the next one is often nearer than that, and to wake up takes tens
// of microseconds. A spin that finds nothing to do for long gives its processor
// to others: more threads than cores are slow, not stuck.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace ingle {

// Threads: one calls run() and opens steps; its is thread 0 of the regions.
class ThreadPool {
 public:
  // threads >= 1, the caller's included.
  // Throws std::system_error where the system has no thread left.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const {
    return threads_;
  }

  // While one is there, workers don't sleep. They may be nested.
  class Step {
   public:
    explicit Step(ThreadPool& pool) : pool_(pool) {
      pool_.open_step();
    }
    ~Step() {
      pool_.close_step();
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    ThreadPool& pool_;
  };

  // Calls region(thread) on every thread, 0 to threads() - 1, and returns when
  // all have. A region must not throw and must not run another. One outside of
  // a step is a step.
  template <class Region>
  void run(Region&& region) {
    using Type = std::remove_reference_t<Region>;
    start(
        [](void* context, int thread) {
          (*static_cast<Type*>(context))(thread);
        },
        const_cast<void*>(static_cast<const void*>(&region)));
  }

  // In a region: returns once every thread has called it as often.
  void barrier(int thread);

 private:
  using Call = void (*)(void* context, int thread);

  // Flags of one thread, on a cache line of their own.
  struct alignas(64) Flag {
    std::atomic<uint64_t> value{0};
  };

  void start(Call call, void* context);
  void work(int thread);
  uint64_t wait_for_region(uint64_t seen);
  void open_step();
  void close_step();

  int threads_;
  Call call_ = nullptr;
  void* context_ = nullptr;
  Flag region_; // counts regions; what starts one
  std::atomic<int> steps_{0}; // that are open
  std::atomic<bool> is_over_{false};
  std::unique_ptr<Flag[]> arrived_; // at how many barriers each thread was

  // Ends and joins them, also where not all could be started.
  struct Workers {
    ~Workers();
    ThreadPool& pool;
    std::vector<std::thread> threads;
  };
  Workers workers_{*this, {}};
};

// The part of `count` things that one thread of many has: [begin, end).
struct Share {
  int begin = 0;
  int end = 0;
};
inline Share share_of(int count, int thread, int threads) {
  const auto cut = [&](int t) {
    return static_cast<int>(static_cast<int64_t>(count) * t / threads);
  };
  return {cut(thread), cut(thread + 1)};
}

} // namespace ingle

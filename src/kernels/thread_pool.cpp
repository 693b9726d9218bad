#include "kernels/thread_pool.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ingle {
namespace {

// About 50 microseconds of pauses.
constexpr int kSpins = 2048;
// About a millisecond in which there is no step; others may have the processor.
constexpr int kIdleYields = 2048;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Condition>
void spin_until(Condition&& condition) {
  for (int i = 0; !condition();) {
    if (i < kSpins) {
      ++i;
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

} // namespace

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(1, threads)),
      arrived_(std::make_unique<Flag[]>(static_cast<size_t>(threads_))) {
  for (int thread = 1; thread < threads_; ++thread) {
    workers_.threads.emplace_back([this, thread] { work(thread); });
  }
}

ThreadPool::Workers::~Workers() {
  pool.is_over_.store(true, std::memory_order_relaxed);
  pool.region_.value.fetch_add(1, std::memory_order_release);
  pool.open_step();
  for (std::thread& worker : threads) {
    worker.join();
  }
}

void ThreadPool::start(Call call, void* context) {
  const Step step(*this);
  call_ = call;
  context_ = context;
  region_.value.fetch_add(1, std::memory_order_release);
  call(context, 0);
  barrier(0);
}

void ThreadPool::barrier(int thread) {
  if (threads_ == 1) {
    return;
  }
  const auto index = static_cast<size_t>(thread);
  const uint64_t count =
      arrived_[index].value.load(std::memory_order_relaxed) + 1;
  arrived_[index].value.store(count, std::memory_order_release);
  for (int other = 0; other < threads_; ++other) {
    const auto& flag = arrived_[static_cast<size_t>(other)].value;
    spin_until([&] { return flag.load(std::memory_order_acquire) >= count; });
  }
}

uint64_t ThreadPool::wait_for_region(uint64_t seen) {
  for (int i = 0;;) {
    const uint64_t now = region_.value.load(std::memory_order_acquire);
    if (now != seen) {
      return now;
    }
    if (i < kSpins) {
      ++i;
      pause();
    } else if (i < kSpins + kIdleYields) {
      ++i;
      std::this_thread::yield();
    } else if (steps_.load(std::memory_order_relaxed) > 0) {
      std::this_thread::yield();
    } else {
      steps_.wait(0, std::memory_order_relaxed);
      i = 0;
    }
  }
}

void ThreadPool::work(int thread) {
  for (uint64_t seen = 0;;) {
    seen = wait_for_region(seen);
    if (is_over_.load(std::memory_order_relaxed)) {
      return;
    }
    call_(context_, thread);
    barrier(thread);
  }
}

void ThreadPool::open_step() {
  // In one order with the library's own count of who sleeps: it wakes nobody
  // where it has seen none.
  if (steps_.fetch_add(1, std::memory_order_seq_cst) == 0 && threads_ > 1) {
    steps_.notify_all(); // of no cost where none sleeps
  }
}

void ThreadPool::close_step() {
  steps_.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace ingle

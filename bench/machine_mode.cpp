// What the machine gives two threads right now, as one JSON object:
//
//   {"meet_ns": 52.1, "read_gb_s": [28.4, 38.0]}
//
// meet_ns: how long two threads on two processors take to meet, over a cache
// line each. read_gb_s: how fast one thread, and two together, read memory.
// Virtual machines change both within minutes, by where they are run: a figure
// of a benchmark is worth more beside them. Medians; takes under a second. On
// one processor there is one rate and no meeting (null).

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

#include "read_memory.h"

namespace {

using ingle::read_memory;

constexpr int kRounds = 5;
constexpr int kMeetings = 50'000; // in a round
constexpr size_t kWords = size_t{24} << 20; // 192 MB, more than caches hold

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Processors that this process may run on, two at most.
std::vector<int> find_processors() {
  std::vector<int> found;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE && found.size() < 2; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) {
      found.push_back(cpu);
    }
  }
  return found;
}

void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof(one), &one);
}

struct alignas(128) Flag { // neighbouring lines are fetched in pairs
  std::atomic<int> value = 0;
};

// Two threads that meet again and again.
class Pair {
 public:
  void meet(size_t self) {
    const int count = flags_[self].value.load(std::memory_order_relaxed) + 1;
    flags_[self].value.store(count, std::memory_order_release);
    while (flags_[1 - self].value.load(std::memory_order_acquire) < count) {
    }
  }

 private:
  std::array<Flag, 2> flags_;
};

std::atomic<uint64_t> sink; // a sum that is not used would not be made

struct Mode {
  std::vector<double> meet_ns;
  std::vector<double> alone; // GB/s
  std::vector<double> together;
};

double gigabytes(size_t threads) {
  return static_cast<double>(threads * kWords * sizeof(uint64_t)) / 1e9;
}

// What thread `self` of two does; the first writes down the times.
void measure(size_t self, Pair& pair, Mode& mode) {
  const std::vector<uint64_t> words(kWords, self); // touched where it is read
  for (int round = 0; round < kRounds; ++round) {
    pair.meet(self);
    double start = now();
    for (int i = 0; i < kMeetings; ++i) {
      pair.meet(self);
    }
    const double met = now() - start;
    start = now();
    sink += read_memory(words);
    pair.meet(self); // both are done
    const double together = now() - start;
    if (self == 0) {
      start = now();
      sink += read_memory(words);
      mode.alone.push_back(gigabytes(1) / (now() - start));
      mode.meet_ns.push_back(met / kMeetings * 1e9);
      mode.together.push_back(gigabytes(2) / together);
    }
  }
}

void measure_alone(Mode& mode) {
  const std::vector<uint64_t> words(kWords, 1);
  for (int round = 0; round < kRounds; ++round) {
    const double start = now();
    sink += read_memory(words);
    mode.alone.push_back(gigabytes(1) / (now() - start));
  }
}

} // namespace

int main() {
  const std::vector<int> processors = find_processors();
  Mode mode;
  if (processors.size() < 2) {
    measure_alone(mode);
    std::printf(
        "{\"meet_ns\": null, \"read_gb_s\": [%.1f]}\n", median(mode.alone));
    return 0;
  }
  Pair pair;
  std::thread other([&] {
    stay_on(processors[1]);
    measure(1, pair, mode);
  });
  stay_on(processors[0]);
  measure(0, pair, mode);
  other.join();
  std::printf(
      "{\"meet_ns\": %.0f, \"read_gb_s\": [%.1f, %.1f]}\n",
      median(mode.meet_ns),
      median(mode.alone),
      median(mode.together));
  return 0;
}

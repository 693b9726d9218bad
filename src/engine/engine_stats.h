// What the engine does, and has done since it started: a snapshot of counts
// and times. No MLX: http/ and api/ see this.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingle {

// How many times took how long.
//
// Units: seconds.
class TimeHistogram {
 public:
  // `bounds` ascend; each is the most of its bucket, and a last bucket takes
  // what is above all. They are constants that outlive it.
  explicit TimeHistogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double seconds) {
    const auto bucket = std::ranges::lower_bound(bounds_, seconds);
    ++counts_[static_cast<size_t>(bucket - bounds_.begin())];
    ++count_;
    sum_ += seconds;
  }

  std::span<const double> bounds() const {
    return bounds_;
  }
  // Of each bucket, those before it not included; one more than bounds.
  std::span<const uint64_t> counts() const {
    return counts_;
  }
  uint64_t count() const {
    return count_;
  }
  double sum() const {
    return sum_;
  }

 private:
  std::span<const double> bounds_;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ = 0;
};

// Of requests, from what is at once to what nobody waits for.
inline constexpr std::array kRequestSeconds = {
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0};
// Between tokens.
inline constexpr std::array kTokenSeconds = {
    0.001,
    0.002,
    0.003,
    0.005,
    0.0075,
    0.01,
    0.015,
    0.02,
    0.03,
    0.05,
    0.075,
    0.1,
    0.15,
    0.25,
    0.5,
    1.0,
    2.5};

struct FinishCounts {
  uint64_t stop = 0; // end of sequence, or a stop string
  uint64_t length = 0;
  uint64_t tool_calls = 0; // instead of one of both above
  uint64_t cancelled = 0; // the client went away, or the server stopped
  uint64_t failed = 0; // errors of ours
};

// See PromptCacheStats.
struct PromptCacheFigures {
  size_t entries = 0;
  size_t bytes = 0;
  size_t max_bytes = 0;
  size_t checkpoint_bytes = 0; // of bytes
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evicted = 0;
};

struct EngineStats {
  // Settings, and what the machine allows.
  int max_rows = 1; // generations that run at the same time
  size_t queue_limit = 0; // generations that wait or run
  std::optional<uint64_t> usable_bytes; // of memory; nothing: no limit is known

  // How layers hold keys and values ("16": bits, "8/64": bits and group size,
  // "state": a recurrent one), and how many do; empty until a model is loaded.
  std::map<std::string, int> kv_layers;

  PromptCacheFigures prompt_cache;

  // Generations now: of its prompt nothing is read yet, or not all, or all.
  size_t queued = 0;
  size_t prefilling = 0;
  size_t decoding = 0;

  // Totals.
  uint64_t steps = 0; // of the scheduler
  uint64_t prompt_tokens = 0; // read by the model
  uint64_t cached_tokens = 0; // of prompts, served from a cache instead
  uint64_t generated_tokens = 0; // ends of sequence included
  FinishCounts finished;
  std::map<std::string, uint64_t> refused; // by the code that clients get

  // From when a generation was queued: to when it began to run, to its first
  // token, to its end.
  TimeHistogram queue_wait{kRequestSeconds};
  TimeHistogram first_token{kRequestSeconds};
  TimeHistogram request{kRequestSeconds};
  // Of each answer, from one token to the next.
  TimeHistogram between_tokens{kTokenSeconds};

  size_t running() const {
    return prefilling + decoding;
  }
};

} // namespace ingle

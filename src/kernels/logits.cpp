#include "kernels/logits.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace ingle {
namespace {

constexpr size_t kPart = 4096; // logits that a thread looks at at a time
static_assert(kPart % LogitPasses::kBlock == 0);

size_t parts_of(std::span<const float> logits) {
  return (logits.size() + kPart - 1) / kPart;
}

std::span<const float>
piece(std::span<const float> logits, size_t i, size_t size) {
  const size_t begin = i * size;
  return logits.subspan(begin, std::min(size, logits.size() - begin));
}

int size_of(std::span<const float> logits) {
  return static_cast<int>(logits.size());
}

} // namespace

// fn(i) for every part.
template <class Fn>
void LogitPasses::for_parts(size_t count, Fn&& fn) const {
  constexpr size_t kFew = 4; // not worth a region
  if (pool_ == nullptr || count < kFew) {
    for (size_t i = 0; i < count; ++i) {
      fn(i);
    }
    return;
  }
  pool_->run([&](int thread) {
    const Share share =
        share_of(static_cast<int>(count), thread, pool_->threads());
    for (int i = share.begin; i < share.end; ++i) {
      fn(static_cast<size_t>(i));
    }
  });
}

std::optional<size_t> LogitPasses::first_of_largest(
    std::span<const float> logits) const {
  struct Part {
    float largest = 0;
    bool is_sound = true;
  };
  std::vector<Part> parts(parts_of(logits));
  for_parts(parts.size(), [&](size_t i) {
    const auto part = piece(logits, i, kPart);
    parts[i].largest =
        set_->largest(part.data(), size_of(part), parts[i].is_sound);
  });
  const auto best = std::max_element(
      parts.begin(), parts.end(), [](const Part& a, const Part& b) {
        return a.largest < b.largest;
      });
  const bool is_sound = std::all_of(
      parts.begin(), parts.end(), [](const Part& p) { return p.is_sound; });
  if (!is_sound || best == parts.end() ||
      best->largest == -std::numeric_limits<float>::infinity()) {
    return std::nullopt;
  }
  const auto begin =
      logits.begin() + (best - parts.begin()) * std::ptrdiff_t{kPart};
  return static_cast<size_t>(
      std::find(begin, logits.end(), best->largest) - logits.begin());
}

std::vector<double> LogitPasses::sums_of_blocks(
    std::span<const float> logits,
    float peak,
    float rate,
    float floor) const {
  constexpr size_t kBlocks = kPart / kBlock; // of a part
  std::vector<double> sums((logits.size() + kBlock - 1) / kBlock);
  for_parts(parts_of(logits), [&](size_t i) {
    const size_t end = std::min(sums.size(), (i + 1) * kBlocks);
    for (size_t b = i * kBlocks; b < end; ++b) {
      const auto block = piece(logits, b, kBlock);
      sums[b] = set_->exp_sum(block.data(), size_of(block), peak, rate, floor);
    }
  });
  return sums;
}

double LogitPasses::exp_sum(std::span<const float> logits, float peak) const {
  const auto sums =
      sums_of_blocks(logits, peak, 1, std::numeric_limits<float>::lowest());
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

std::array<double, kFloors> LogitPasses::exp_sums(
    std::span<const float> logits,
    float peak,
    std::span<const float, kFloors> floors) const {
  std::vector<std::array<double, kFloors>> parts(parts_of(logits));
  for_parts(parts.size(), [&](size_t i) {
    const auto part = piece(logits, i, kPart);
    set_->exp_sums(
        part.data(), size_of(part), peak, floors.data(), parts[i].data());
  });
  std::array<double, kFloors> sums{};
  for (const auto& part : parts) {
    for (size_t j = 0; j < sums.size(); ++j) {
      sums[j] += part[j];
    }
  }
  return sums;
}

std::vector<int32_t> LogitPasses::find_between(
    std::span<const float> logits,
    float low,
    float high) const {
  struct Part {
    int found = 0;
    std::array<int32_t, kPart + 15> indices;
  };
  std::vector<Part> parts(parts_of(logits));
  for_parts(parts.size(), [&](size_t i) {
    const auto part = piece(logits, i, kPart);
    parts[i].found = set_->find_between(
        part.data(), size_of(part), low, high, parts[i].indices.data());
  });
  std::vector<int32_t> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto found = static_cast<size_t>(parts[i].found);
    for (const int32_t index : std::span(parts[i].indices).first(found)) {
      all.push_back(static_cast<int32_t>(i * kPart) + index);
    }
  }
  return all;
}

} // namespace ingle

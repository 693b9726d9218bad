// What `ingle bench` measures, and what each test is called.
#pragma once

#include <string>
#include <vector>

namespace ingle {

// Reading a prompt, or decoding.
struct BenchTest {
  int prompt = 0; // tokens to read; 0: it decodes
  int gen = 0; // tokens that each row decodes
  int depth = 0; // tokens that each row has read before
  int batch = 1; // rows that decode at the same time
  // True iff tokens are drawn at kBenchTemperature and kBenchTopP; else the
  // likeliest is taken.
  bool sampled = false;

  bool operator==(const BenchTest&) const = default;
};

inline constexpr double kBenchTemperature = 0.7;
inline constexpr double kBenchTopP = 0.95;

// As llama-bench has it: "pp512", "tg64", "tg64@d2048"; and "tg64@d2048 b8" for
// 8 rows, "tg64+sample" with a sampler.
std::string test_name(const BenchTest& test);

// As the flags gave them. Empty: not given.
struct BenchSizes {
  std::vector<int> prompt = {};
  std::vector<int> gen = {};
  std::vector<int> depth = {};
  std::vector<int> batch = {};
};

// Nothing given: a list that says what a model is like on a machine. Else what
// was given and no more: each prompt, and each length to decode at each depth
// in each batch (default: 64, 0, 1), once more with the sampler at the first
// depth in the first batch. A length of 0 is none.
std::vector<BenchTest> plan_tests(const BenchSizes& sizes);

} // namespace ingle

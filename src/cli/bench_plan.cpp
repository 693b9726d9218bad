#include "cli/bench_plan.h"

namespace ingle {
namespace {

constexpr int kDefaultGen = 64;

void add_prompts(std::vector<BenchTest>& tests, const std::vector<int>& sizes) {
  for (const int prompt : sizes) {
    if (prompt > 0) {
      tests.push_back({.prompt = prompt});
    }
  }
}

void add_decodes(std::vector<BenchTest>& tests, const BenchSizes& sizes) {
  for (const int gen : sizes.gen) {
    if (gen == 0) {
      continue;
    }
    for (const int depth : sizes.depth) {
      for (const int batch : sizes.batch) {
        tests.push_back({.gen = gen, .depth = depth, .batch = batch});
      }
    }
    tests.push_back(
        {.gen = gen,
         .depth = sizes.depth.front(),
         .batch = sizes.batch.front(),
         .sampled = true});
  }
}

std::vector<BenchTest> default_tests() {
  std::vector<BenchTest> tests;
  add_prompts(tests, {128, 512, 2048, 7800});
  add_decodes(
      tests, {.gen = {kDefaultGen}, .depth = {0, 2048, 8192}, .batch = {1}});
  for (const int batch : {2, 4, 8, 16}) {
    tests.push_back({.gen = kDefaultGen, .batch = batch});
  }
  return tests;
}

std::vector<int> or_else(const std::vector<int>& given, int value) {
  return given.empty() ? std::vector<int>{value} : given;
}

} // namespace

std::string test_name(const BenchTest& test) {
  if (test.prompt > 0) {
    return "pp" + std::to_string(test.prompt);
  }
  std::string name = "tg" + std::to_string(test.gen);
  if (test.depth > 0) {
    name += "@d" + std::to_string(test.depth);
  }
  if (test.batch > 1) {
    name += " b" + std::to_string(test.batch);
  }
  return test.sampled ? name + "+sample" : name;
}

std::vector<BenchTest> plan_tests(const BenchSizes& sizes) {
  const bool decodes =
      !sizes.gen.empty() || !sizes.depth.empty() || !sizes.batch.empty();
  if (!decodes && sizes.prompt.empty()) {
    return default_tests();
  }
  std::vector<BenchTest> tests;
  add_prompts(tests, sizes.prompt);
  if (decodes) {
    add_decodes(
        tests,
        {.gen = or_else(sizes.gen, kDefaultGen),
         .depth = or_else(sizes.depth, 0),
         .batch = or_else(sizes.batch, 1)});
  }
  return tests;
}

} // namespace ingle

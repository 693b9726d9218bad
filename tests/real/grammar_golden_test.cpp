// Masks over a real vocabulary against llguidance's own package.
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "real_model.h"
#include "text/grammar.h"

namespace ingle {
namespace {

using Json = nlohmann::json;
using Kind = GrammarSpec::Kind;

constexpr TokenId kEos = 2;

// FNV-1a, as the script has it.
std::string digest(const std::vector<TokenId>& ids) {
  uint64_t value = 0xCBF29CE484222325u;
  for (const TokenId id : ids) {
    for (const unsigned shift : {0u, 8u, 16u, 24u}) {
      value ^= static_cast<uint32_t>(id) >> shift & 0xFF;
      value *= 0x100000001B3u;
    }
  }
  char text[17];
  std::snprintf(
      text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<TokenId> allowed(GrammarMatcher& matcher, size_t vocab_size) {
  std::vector<uint32_t> bits((vocab_size + 31) / 32);
  EXPECT_TRUE(matcher.mask(bits).is_ok());
  std::vector<TokenId> ids;
  for (size_t id = 0; id < vocab_size; ++id) {
    if ((bits[id / 32] >> (id % 32) & 1) != 0) {
      ids.push_back(static_cast<TokenId>(id));
    }
  }
  return ids;
}

TEST(GrammarGoldenTest, MasksAreThoseOfTheLibrarysOwnPackage) {
  const auto fs = make_posix_file_system();
  const auto tokenizer =
      Tokenizer::load(*fs, folder_of(kSmollm2) + "/tokenizer.json");
  if (!tokenizer.is_ok()) {
    GTEST_SKIP() << kSmollm2.absent;
  }
  const std::map<std::string, Kind> kinds = {
      {"json_schema", Kind::kJsonSchema},
      {"regex", Kind::kRegex},
      {"lark", Kind::kLark}};
  const auto size = static_cast<size_t>((*tokenizer)->vocab_size());
  const GrammarCompiler compiler(*tokenizer, {kEos}, static_cast<int>(size));
  const auto text =
      fs->read(std::string(INGLE_TEST_DATA) + "/grammar_masks.json");
  for (const Json& golden : Json::parse(*text)["cases"]) {
    SCOPED_TRACE(golden["text"].get<std::string>());
    const auto grammar = compiler.compile(
        {kinds.at(golden["kind"]), golden["text"].get<std::string>()});
    ASSERT_TRUE(grammar.is_ok()) << grammar.status().message();
    const auto matcher = *(*grammar)->make_matcher();
    for (const Json& step : golden["steps"]) {
      const auto ids = allowed(*matcher, size);
      ASSERT_EQ(ids.size(), step["count"].get<size_t>());
      ASSERT_EQ(digest(ids), step["ids"].get<std::string>());
      ASSERT_TRUE(matcher->accept(step["token"].get<TokenId>()).is_ok());
    }
  }
}

} // namespace
} // namespace ingle

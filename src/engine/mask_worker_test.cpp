#include "engine/mask_worker.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "text/testing/tiny_tokenizer.h"

namespace ingle {
namespace {

constexpr size_t kVocabSize = 270;

class MaskWorkerTest : public testing::Test {
 protected:
  std::shared_ptr<const Grammar> regex(std::string text) const {
    auto grammar =
        compiler_.compile({GrammarSpec::Kind::kRegex, std::move(text)});
    EXPECT_TRUE(grammar.is_ok()) << grammar.status().message();
    return *grammar;
  }
  RowGrammar row(std::string text) {
    return {regex(std::move(text)), kVocabSize, worker_};
  }

  // The tokens that are left of equal logits; nothing: an error.
  static std::optional<std::vector<TokenId>> left(
      RowGrammar& row,
      std::span<const TokenId> never = {}) {
    std::vector<float> logits(kVocabSize, 1);
    if (!row.apply(logits, never).is_ok()) {
      return std::nullopt;
    }
    std::vector<TokenId> ids;
    for (size_t i = 0; i < kVocabSize; ++i) {
      if (!std::isinf(logits[i])) {
        ids.push_back(static_cast<TokenId>(i));
      }
    }
    return ids;
  }

  const GrammarCompiler compiler_{
      *Tokenizer::from_json(tiny_tokenizer_json(), "tokenizer.json"),
      {kTinyImEnd},
      kVocabSize};
  MaskWorker worker_;
};

using Ids = std::vector<TokenId>;

TEST_F(MaskWorkerTest, RowsGetTheirOwnMasksInAnyOrder) {
  RowGrammar first = row("ab");
  RowGrammar second = row("cd");
  first.start_mask();
  second.start_mask();
  EXPECT_EQ(left(second), Ids{'c'});
  EXPECT_EQ(left(first), Ids{'a'});
  ASSERT_TRUE(second.accept('c').is_ok());
  second.start_mask();
  EXPECT_EQ(left(second), Ids{'d'});
  ASSERT_TRUE(second.accept('d').is_ok());
  EXPECT_TRUE(second.has_ended());
  EXPECT_FALSE(first.has_ended());
}

TEST_F(MaskWorkerTest, WhereOnlyAForbiddenEndIsLeftTheAnswerIsOver) {
  RowGrammar ending = row("ab?");
  const Ids never = {kTinyImEnd};
  ending.start_mask();
  EXPECT_EQ(left(ending, never), Ids{'a'});
  ASSERT_TRUE(ending.accept('a').is_ok());
  ending.start_mask();
  EXPECT_EQ(left(ending, never), Ids{'b'});

  std::vector<float> logits(kVocabSize, 1);
  logits['b'] = -std::numeric_limits<float>::infinity();
  ending.start_mask();
  const auto goes_on = ending.apply(logits, never);
  ASSERT_TRUE(goes_on.is_ok());
  EXPECT_FALSE(*goes_on);
}

TEST_F(MaskWorkerTest, AMatcherThatFailsFailsItsRowAlone) {
  RowGrammar failing = row("ab");
  RowGrammar other = row("ab");
  failing.start_mask();
  other.start_mask();
  EXPECT_EQ(left(failing), Ids{'a'});
  const Status status = failing.accept('x'); // as nothing but a bug would
  EXPECT_EQ(status.message().substr(0, 9), "grammar: ");
  failing.start_mask();
  EXPECT_EQ(left(failing), std::nullopt);
  EXPECT_EQ(left(other), Ids{'a'});
}

TEST_F(MaskWorkerTest, RowsAndWorkersGoAwayWhileMasksAreComputed) {
  for (int i = 0; i < 50; ++i) {
    MaskWorker worker;
    const auto grammar = regex("[a-z]{1,50}x");
    for (int j = 0; j < 4; ++j) {
      RowGrammar(grammar, kVocabSize, worker).start_mask();
    }
  }
}

} // namespace
} // namespace ingle

#include "text/stop_matcher.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(Acceptance, stop_earliest_of_many) {
  StopMatcher matcher({"END", "stop", "\n\n"});
  EXPECT_EQ(matcher.push("one stop two END\n\n"), "one ");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(Acceptance, stop_spans_tokens_never_leaks) {
  StopMatcher matcher({"</answer>"});
  EXPECT_EQ(matcher.push("42<"), "42");
  EXPECT_EQ(matcher.push("/ans"), "");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.push("wer> tail"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(Acceptance, stop_prefix_released) {
  StopMatcher matcher({"abac"});
  EXPECT_EQ(matcher.push("xaba"), "x");
  EXPECT_EQ(matcher.push("b"), "ab"); // "ab" may still begin a match
  EXPECT_EQ(matcher.push("z"), "abz");
  EXPECT_FALSE(matcher.stopped());
}

TEST(Acceptance, stop_flush_releases) {
  StopMatcher matcher({"STOP"});
  EXPECT_EQ(matcher.push("go STO"), "go ");
  EXPECT_EQ(matcher.flush(), "STO");
  EXPECT_EQ(matcher.flush(), "");
  EXPECT_FALSE(matcher.stopped());
}

TEST(Acceptance, stop_none_passthrough) {
  StopMatcher none({});
  EXPECT_EQ(none.push("any text"), "any text");
  StopMatcher empty({"", ""});
  EXPECT_EQ(empty.push("any text"), "any text");
  EXPECT_FALSE(empty.stopped());
}

TEST(StopMatcher, TheLongestOfThoseThatEndTogetherWins) {
  StopMatcher matcher({"d", "cd", "xd"});
  EXPECT_EQ(matcher.push("abcd"), "ab");
}

TEST(StopMatcher, TheFirstToBeCompleteWins) {
  StopMatcher whole({"abcd", "bc"});
  EXPECT_EQ(whole.push("abcd"), "a");
  StopMatcher bytes({"abcd", "bc"});
  EXPECT_EQ(bytes.push("a"), "");
  EXPECT_EQ(bytes.push("b"), "");
  EXPECT_EQ(bytes.push("c"), "a");
  EXPECT_TRUE(bytes.stopped());
}

TEST(StopMatcher, AnEmptyPieceReleasesNothing) {
  StopMatcher matcher({"ab"});
  EXPECT_EQ(matcher.push("xa"), "x");
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.push("b"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, WithholdsWholeCharacters) {
  StopMatcher matcher({"\u00e9!"});
  EXPECT_EQ(matcher.push("caf\u00e9"), "caf");
  EXPECT_EQ(matcher.push("\u00e8"), "\u00e9\u00e8");
}

// The definition, by trying every place.
std::string before_first_match(
    const std::vector<std::string>& sequences,
    const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t length = 0;
    for (const std::string& sequence : sequences) {
      if (std::string_view(text).substr(0, end).ends_with(sequence)) {
        length = std::max(length, sequence.size());
      }
    }
    if (length > 0) {
      return text.substr(0, end - length);
    }
  }
  return text;
}

TEST(StopMatcher, EveryCutOfTheTextGivesTheSame) {
  std::mt19937 random(7);
  auto below = [&](size_t n) { return random() % n; };
  auto letters = [&](size_t size) {
    std::string text;
    while (text.size() < size) {
      text.push_back(static_cast<char>('a' + below(2)));
    }
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> sequences;
    for (size_t count = below(4); count > 0; --count) {
      sequences.push_back(letters(1 + below(7)));
    }
    std::string text = letters(below(40));
    StopMatcher matcher(sequences);
    std::string shown;
    for (size_t at = 0; at < text.size();) {
      size_t size = std::min(below(6), text.size() - at);
      shown += matcher.push(std::string_view(text).substr(at, size));
      at += size;
      ASSERT_TRUE(before_first_match(sequences, text).starts_with(shown));
    }
    shown += matcher.flush();
    ASSERT_EQ(shown, before_first_match(sequences, text)) << text;
    ASSERT_EQ(matcher.stopped(), shown != text);
  }
}

} // namespace
} // namespace ingle

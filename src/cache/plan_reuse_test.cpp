#include "cache/plan_reuse.h"

#include <string>

#include <gtest/gtest.h>

namespace ingle {
namespace {

// Tokens are letters.
std::vector<TokenId> ids(const std::string& text) {
  return {text.begin(), text.end()};
}

// A source as a table writes it. `held` below 0: all of it.
struct Source {
  std::string tokens;
  int64_t held = -1;
  int64_t first_resume_point = 0;
  std::vector<int64_t> checkpoints{};
  bool is_idle = true;
};

struct Case {
  const char* name;
  std::string prompt;
  std::vector<Source> sources;
  int64_t length;
  size_t source = 0;
  bool moves = false;
  bool waits = false;
  int64_t shared = -1; // below 0: not looked at
};

const std::string kLong(40, 'x');

const Case kCases[] = {
    {"nothing is there", "abc", {}, 0, 0, false, false, 0},
    {"nothing is shared", "abc", {{"xbc"}}, 0, 0, false, false, 0},
    {"goes on where it ends", "abcd", {{"abc"}}, 3, 0, true},
    {"diverges", "abcd", {{"abx"}}, 2, 0, false, false, 2},
    {"ends within it", "abc", {{"abcdef"}}, 2, 0, false, false, 3},
    {"the same prompt is read again but for a token", "abc", {{"abc"}}, 2},
    {"one token has none before it", "a", {{"abc"}}, 0, 0, false, false, 1},
    {"the longest wins", "abcde", {{"ab"}, {"abcd"}, {"abc"}}, 4, 1, true},
    {"the first of equals wins", "abcz", {{"abcx"}, {"abcy"}}, 3, 0},
    {"one that moves beats its equals",
     "abcz",
     {{"abcx"}, {"abc"}},
     3,
     1,
     true},
    {"one that is used does not move",
     "abcd",
     {{"abc", -1, 0, {}, false}},
     3,
     0,
     false},

    {"a recurrent state goes on where it ends",
     "abcd",
     {{"abc", -1, 3}},
     3,
     0,
     true},
    {"and nowhere else", "abx", {{"abc", -1, 3}}, 0, 0, false, false, 2},
    {"but at a checkpoint",
     "abcdx",
     {{"abcdef", -1, 6, {2, 3, 5}}},
     3,
     0,
     false,
     false,
     4},
    {"a checkpoint at the prompt's end is too late for its last token",
     "abc",
     {{"abcdef", -1, 6, {1, 3}}},
     1},
    {"no checkpoint is early enough", "abx", {{"abcdef", -1, 6, {3}}}, 0},
    {"a window goes on where its rows reach back",
     "abcdx",
     {{"abcdef", -1, 4}},
     4},
    {"and at a checkpoint before", "abcx", {{"abcdef", -1, 4, {2}}}, 2},
    {"a shorter one with the later checkpoint wins",
     "abcdex",
     {{"abcdefgh", -1, 8, {2}}, {"abcdez", -1, 6, {4}}},
     4,
     1},

    {"waits for what is being read",
     kLong + "a",
     {{kLong + "b", 3, 0, {}, false}},
     40,
     0,
     false,
     true},
    {"takes what a reader has already",
     kLong + "a",
     {{kLong + "bc", 41, 0, {}, false}},
     40,
     0},
    {"does not wait for a few tokens",
     "abcdefgh",
     {{"abcdefghi", 2, 0, {}, false}},
     2},
    {"does not wait for a little more than is there",
     kLong + "a",
     {{kLong + "b", 3, 0, {}, false}, {kLong.substr(0, 30), -1}},
     30,
     1,
     true},
    {"waits for much more than is there",
     kLong + "a",
     {{kLong + "b", 3, 0, {}, false}, {kLong.substr(0, 20), -1}},
     40,
     0,
     false,
     true},
    {"waits for a recurrent state to get there",
     kLong + "a",
     {{kLong + "b", 10, 10, {}, false}},
     40,
     0,
     false,
     true},
    {"waits for the same prompt but for its last token",
     kLong,
     {{kLong, 0, 0, {}, false}},
     39,
     0,
     false,
     true},
};

TEST(PlanReuse, Table) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.name);
    std::vector<std::vector<TokenId>> tokens;
    for (const Source& source : each.sources) {
      tokens.push_back(ids(source.tokens));
    }
    std::vector<ReuseSource> sources;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const Source& source = each.sources[i];
      sources.push_back(
          {tokens[i],
           source.held < 0 ? std::ssize(tokens[i]) : source.held,
           source.first_resume_point,
           source.checkpoints,
           source.is_idle});
    }
    const ReusePlan plan = plan_reuse(ids(each.prompt), sources);
    EXPECT_EQ(plan.length, each.length);
    EXPECT_EQ(plan.moves, each.moves);
    EXPECT_EQ(plan.waits, each.waits);
    if (each.length > 0) {
      EXPECT_EQ(plan.source, each.source);
    }
    if (each.shared >= 0) {
      EXPECT_EQ(plan.shared, each.shared);
    }
  }
}

} // namespace
} // namespace ingle

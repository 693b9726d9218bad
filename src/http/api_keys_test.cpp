#include "http/api_keys.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(ApiKeys, NoKeysAdmitEverybody) {
  const ApiKeys none({});
  EXPECT_TRUE(none.admit(""));
  EXPECT_TRUE(none.admit("Bearer anything"));
}

TEST(ApiKeys, AdmitOneOfTheKeysAndNothingElse) {
  const ApiKeys keys({"sekrit", "other"});
  for (const char* const good :
       {"Bearer sekrit", "Bearer other", "bearer sekrit"}) {
    EXPECT_TRUE(keys.admit(good)) << good;
  }
  for (const char* const bad :
       {"",
        "Bearer",
        "Bearer ",
        "sekrit",
        "Basic sekrit",
        "Bearer sekri",
        "Bearer sekrits",
        "Bearer Sekrit",
        "Bearer sekritsekrit",
        "Bearer  sekrit"}) {
    EXPECT_FALSE(keys.admit(bad)) << bad;
  }
}

} // namespace
} // namespace ingle

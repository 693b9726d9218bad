#include "cli/environment.h"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

namespace ingle {
namespace {

// Sets variables, and takes them back.
class HubPlacesTest : public testing::Test {
 protected:
  HubPlacesTest() {
    for (const char* name :
         {"HOME",
          "XDG_CACHE_HOME",
          "HF_HOME",
          "HF_HUB_CACHE",
          "HF_ENDPOINT",
          "HF_TOKEN",
          "HF_TOKEN_PATH"}) {
      const char* value = std::getenv(name);
      before_[name] = value ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    set("HOME", "/users/u");
  }
  ~HubPlacesTest() override {
    for (const auto& [name, value] : before_) {
      value ? set(name, *value) : static_cast<void>(::unsetenv(name.c_str()));
    }
  }
  static void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(HubPlacesTest, PlacesAreThoseOfTheHubsOwnLibraries) {
  EXPECT_EQ(hub_places().cache, "/users/u/.cache/huggingface/hub");
  EXPECT_EQ(hub_places().token_file, "/users/u/.cache/huggingface/token");
  EXPECT_EQ(hub_places().token, "");
  EXPECT_TRUE(hub_places().endpoint.starts_with("https://"));
  set("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(hub_places().cache, "/caches/huggingface/hub");
  set("HF_HOME", "/hf");
  EXPECT_EQ(hub_places().cache, "/hf/hub");
  EXPECT_EQ(hub_places().token_file, "/hf/token");
}

TEST_F(HubPlacesTest, VariableOfThePlaceItselfWins) {
  set("HF_HOME", "/hf");
  set("HF_HUB_CACHE", "/elsewhere");
  set("HF_TOKEN", "secret");
  set("HF_TOKEN_PATH", "/my/token");
  set("HF_ENDPOINT", "http://127.0.0.1:1234//");
  const HubPlaces places = hub_places();
  EXPECT_EQ(places.cache, "/elsewhere");
  EXPECT_EQ(places.token, "secret");
  EXPECT_EQ(places.token_file, "/my/token");
  EXPECT_EQ(places.endpoint, "http://127.0.0.1:1234");
}

} // namespace
} // namespace ingle

#include "cli/completion_script.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

using testing::HasSubstr;

class CompletionScriptTest : public testing::Test {
 protected:
  CompletionScriptTest() {
    CLI::App* serve = app_.add_subcommand("serve", "Serve: it's [nice]");
    serve->add_option("-p,--port", port_, "The port's number");
    serve->add_flag("--quiet", quiet_, "Say less");
  }
  int port_ = 0;
  bool quiet_ = false;
  CLI::App app_{"", "ingle"};
};

TEST_F(CompletionScriptTest, EachShellGetsCommandsAndFlags) {
  for (const Shell shell : {Shell::kBash, Shell::kZsh, Shell::kFish}) {
    const std::string script = completion_script(app_, shell);
    for (const char* word : {"serve", "port", "quiet", "help"}) {
      EXPECT_THAT(script, HasSubstr(word));
    }
  }
}

TEST_F(CompletionScriptTest, FlagsWithAValueAreKnownFromThoseWithout) {
  EXPECT_THAT(
      completion_script(app_, Shell::kBash), HasSubstr("valued='|-p|--port|'"));
  const std::string fish = completion_script(app_, Shell::kFish);
  EXPECT_THAT(fish, HasSubstr("-s p -l port -r -d 'The port\\'s number'"));
  EXPECT_THAT(fish, HasSubstr("-l quiet -d"));
}

TEST_F(CompletionScriptTest, TextIsQuotedAsTheShellNeedsIt) {
  const std::string zsh = completion_script(app_, Shell::kZsh);
  EXPECT_THAT(zsh, HasSubstr(R"('serve:Serve\: it'\''s [nice]')"));
  EXPECT_THAT(zsh, HasSubstr(R"({-p,--port}'[The port'\''s number]:value:)"));
}

} // namespace
} // namespace ingle

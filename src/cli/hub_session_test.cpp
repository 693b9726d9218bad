#include "cli/hub_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ingle {
namespace {

TEST(HubToken, VariableWinsOverTheFile) {
  const auto fs = make_memory_file_system();
  const SystemClock clock;
  Environment env{*fs, clock, "/ingle", "python3"};
  env.hub.token_file = "/token";
  EXPECT_EQ(*hub_token(env), "");
  ASSERT_TRUE(write_file(*fs, "/token", as_bytes("from-file\n")).is_ok());
  EXPECT_EQ(*hub_token(env), "from-file");
  env.hub.token = "from-variable";
  EXPECT_EQ(*hub_token(env), "from-variable");
}

TEST(HubToken, TokenThatWouldBreakARequestIsRefusedAndNotShown) {
  const auto fs = make_memory_file_system();
  const SystemClock clock;
  Environment env{*fs, clock, "/ingle", "python3"};
  for (const char* token : {"secret\nHost: x", "secret x", "secr\xc3\xa9t"}) {
    env.hub.token = token;
    const Status status = hub_token(env).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
    EXPECT_THAT(status.message(), testing::HasSubstr("HF_TOKEN"));
    EXPECT_THAT(status.message(), testing::Not(testing::HasSubstr("secr")));
  }
}

TEST(ThisProcess, ProcessThatEndedIsNotRunning) {
  const Processes processes = this_process();
  EXPECT_EQ(processes.self.number, ::getpid());
  EXPECT_NE(processes.self.machine, "");
  EXPECT_TRUE(processes.is_running(::getpid()));
  EXPECT_TRUE(processes.is_running(1)); // another user's, or ours
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(processes.is_running(child));
}

TEST(WaitForHub, StopEndsAWait) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(
      wait_for_hub(std::chrono::seconds(1000), "why", stop.get_token()));
  EXPECT_TRUE(wait_for_hub(std::chrono::seconds(0), "why", {}));
}

} // namespace
} // namespace ingle

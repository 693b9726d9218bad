#include "hub/repo_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_system_faulty.h"
#include "hub/testing/fake_hub.h"

namespace ingle {
namespace {

using testing::HasSubstr;

constexpr const char* kCache = "/cache";
constexpr const char* kFile = "/cache/.locks/models--org--tiny/ingle.lock";

class RepoLockTest : public testing::Test {
 protected:
  Result<std::unique_ptr<RepoLock>> take(const Processes& processes) {
    return RepoLock::take(
        *fs_, clock_, processes, kCache, std::string(kTinyRepo));
  }
  std::optional<Process> holder() {
    return *RepoLock::holder(
        *fs_, clock_, fake_processes(), kCache, std::string(kTinyRepo));
  }
  // A lock that another process has left, or holds.
  void write_lock(std::string_view text) {
    ASSERT_TRUE(fs_->create_directory(parent_path(kFile)).is_ok());
    ASSERT_TRUE(write_file(*fs_, kFile, as_bytes(text)).is_ok());
  }

  FakeClock clock_;
  std::unique_ptr<FileSystem> fs_ = make_memory_file_system(&clock_);
};

TEST_F(RepoLockTest, LockHoldsTheProcessAndGoesWithIt) {
  {
    const auto lock = take(fake_processes());
    ASSERT_TRUE(lock.is_ok()) << lock.status().message();
    EXPECT_EQ(*fs_->read(kFile), "7 here\n");
  }
  EXPECT_FALSE(fs_->exists(kFile));
  EXPECT_TRUE(take(fake_processes()).is_ok());
}

TEST_F(RepoLockTest, live_lock_fails_fast) {
  write_lock("8 here\n");
  const auto lock = take(fake_processes());
  EXPECT_EQ(lock.status().code(), StatusCode::kOverloaded);
  EXPECT_THAT(lock.status().message(), HasSubstr("process 8 on here"));
  EXPECT_THAT(lock.status().message(), HasSubstr(kFile));
  EXPECT_EQ(*fs_->read(kFile), "8 here\n");
  EXPECT_EQ(holder(), (Process{8, "here"}));
}

TEST_F(RepoLockTest, dead_pid_lock_stolen) {
  write_lock("9 here\n");
  EXPECT_EQ(holder(), std::nullopt);
  const auto lock = take(fake_processes());
  ASSERT_TRUE(lock.is_ok()) << lock.status().message();
  EXPECT_EQ(*fs_->read(kFile), "7 here\n");
}

TEST_F(RepoLockTest, LockOfAnotherMachineIsLiveWhateverRunsHere) {
  write_lock("9 there\n");
  EXPECT_EQ(take(fake_processes()).status().code(), StatusCode::kOverloaded);
  write_lock("7 there\n"); // a container's number may be ours
  EXPECT_EQ(take(fake_processes()).status().code(), StatusCode::kOverloaded);
}

TEST_F(RepoLockTest, LockThatIsBeingWrittenIsLive) {
  for (const char* text : {"", "8", "0 here\n", "x here\n", "-1 here\n"}) {
    write_lock(text);
    EXPECT_EQ(take(fake_processes()).status().code(), StatusCode::kOverloaded)
        << text;
  }
}

TEST_F(RepoLockTest, LockThatWasNotKeptForAnHourIsStolen) {
  write_lock("8 here\n");
  clock_.advance(std::chrono::minutes(59));
  EXPECT_EQ(take(fake_processes()).status().code(), StatusCode::kOverloaded);
  clock_.advance(std::chrono::minutes(2));
  EXPECT_TRUE(take(fake_processes()).is_ok());
}

TEST_F(RepoLockTest, LockThatIsKeptIsNotStolen) {
  const auto lock = take(fake_processes());
  ASSERT_TRUE(lock.is_ok());
  Processes other = fake_processes();
  other.self = {8, "here"};
  for (int minute = 0; minute < 90; ++minute) {
    clock_.advance(std::chrono::minutes(1));
    ASSERT_TRUE((*lock)->keep().is_ok());
  }
  EXPECT_EQ(take(other).status().code(), StatusCode::kOverloaded);
}

TEST_F(RepoLockTest, StolenLockIsNoticedAndLeftToItsThief) {
  auto lock = take(fake_processes());
  ASSERT_TRUE(lock.is_ok());
  clock_.advance(std::chrono::hours(2)); // a machine that slept
  Processes other = fake_processes();
  other.self = {8, "here"};
  const auto theirs = take(other);
  ASSERT_TRUE(theirs.is_ok());
  EXPECT_EQ((*lock)->keep().code(), StatusCode::kOverloaded);
  lock = Status::internal("gone");
  EXPECT_EQ(*fs_->read(kFile), "8 here\n");
}

TEST_F(RepoLockTest, FailedCallLeavesNoLockThatKeepsOthersOut) {
  for (uint64_t n = 1;; ++n) {
    FaultyFileSystem faulty(*fs_, n, StatusCode::kNoSpace);
    {
      const auto lock = RepoLock::take(
          faulty, clock_, fake_processes(), kCache, std::string(kTinyRepo));
      if (!lock.is_ok()) {
        EXPECT_EQ(lock.status().code(), StatusCode::kNoSpace);
      }
    }
    if (faulty.calls() < n) {
      EXPECT_GT(n, 10u);
      return;
    }
    EXPECT_TRUE(take(fake_processes()).is_ok()) << n;
  }
}

} // namespace
} // namespace ingle

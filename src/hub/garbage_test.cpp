#include "hub/garbage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_system_faulty.h"
#include "hub/hub_cache.h"
#include "hub/testing/fake_hub.h"

namespace ingle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kCache = "/cache";
constexpr const char* kRepo = "/cache/models--org--tiny";

class GarbageTest : public testing::Test {
 protected:
  void get() {
    Hub hub(fake_, fake_.settings());
    const auto plan = plan_download(hub, {std::string(kTinyRepo)});
    ASSERT_TRUE(plan.is_ok());
    const auto report = download(place_, hub, *plan);
    ASSERT_TRUE(report.is_ok()) << report.status().message();
  }
  // A second commit, in which the weights differ.
  void get_update() {
    fake_.commit = std::string(40, 'b');
    fake_.files["model.safetensors"].back() = '\2';
    get();
  }
  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(
        write_file(*fs_, join_path(kRepo, name), as_bytes(text)).is_ok());
  }
  void wait_a_day() {
    clock_.advance(std::chrono::hours(24));
  }
  std::vector<std::string> found() {
    std::vector<std::string> paths;
    const auto report = find_garbage(place_);
    EXPECT_TRUE(report.is_ok());
    for (const Garbage& garbage : report->found) {
      paths.push_back(garbage.path.substr(std::string(kRepo).size() + 1));
    }
    return paths;
  }
  static std::string blob(const std::string& content) {
    return "blobs/" + etag_of("model.safetensors", content);
  }

  FakeHub fake_;
  FakeClock clock_;
  Processes processes_ = fake_processes();
  std::unique_ptr<FileSystem> fs_ = make_memory_file_system(&clock_);
  const DownloadPlace place_{*fs_, clock_, processes_, kCache};
};

TEST_F(GarbageTest, CacheThatIsNotThereHasNone) {
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, WholeModelIsNone) {
  get();
  wait_a_day();
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, gc_conservative_rules) {
  get();
  const std::string old_weights = fake_.files.at("model.safetensors");
  get_update();
  const std::string stray(64, 'e');
  write("blobs/" + stray, "stray");
  write(blob(old_weights) + ".ingle-part", "half");
  write("blobs/" + stray + ".incomplete", "theirs");
  write("blobs/notes.txt", "a user's own");
  wait_a_day();
  EXPECT_THAT(
      found(),
      UnorderedElementsAre(
          "snapshots/" + std::string(kTinyCommit),
          blob(old_weights),
          blob(old_weights) + ".ingle-part",
          "blobs/" + stray,
          "blobs/" + stray + ".incomplete"));
}

TEST_F(GarbageTest, LookingRemovesNothingAndRemovingOnlyWhatWasFound) {
  get();
  const std::string old_weights = fake_.files.at("model.safetensors");
  get_update();
  wait_a_day();
  EXPECT_EQ(find_garbage(place_)->bytes(), old_weights.size());
  EXPECT_TRUE(fs_->exists(join_path(kRepo, blob(old_weights))));

  const auto removed = remove_garbage(place_);
  ASSERT_TRUE(removed.is_ok());
  EXPECT_EQ(removed->bytes(), old_weights.size());
  EXPECT_THAT(removed->left, IsEmpty());
  EXPECT_FALSE(fs_->exists(join_path(kRepo, blob(old_weights))));
  const CachedRepo repo = *read_repo(*fs_, kCache, std::string(kTinyRepo));
  EXPECT_THAT(repo.snapshots, ElementsAre(fake_.commit));
  const std::string folder = repo.snapshot_folder(fake_.commit);
  const auto names = *fs_->list(folder);
  for (const auto& name : names) {
    EXPECT_EQ(*fs_->read(join_path(folder, name)), fake_.files.at(name));
  }
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, WhatChangedInTheLastHourIsKeptButForOurParts) {
  get();
  write("blobs/" + std::string(64, 'e'), "another program's, just now");
  write("blobs/x.incomplete", "theirs");
  write("blobs/x.ingle-part", "ours, and nobody holds the lock");
  EXPECT_THAT(found(), ElementsAre("blobs/x.ingle-part"));
}

TEST_F(GarbageTest, SnapshotThatChangedInTheLastHourIsKept) {
  get();
  get_update();
  clock_.advance(std::chrono::minutes(59));
  EXPECT_THAT(found(), IsEmpty());
  clock_.advance(std::chrono::minutes(2));
  EXPECT_THAT(
      found(), testing::Contains("snapshots/" + std::string(kTinyCommit)));
}

TEST_F(GarbageTest, SnapshotThatARefNamesIsKept) {
  get();
  write("refs/v1", kTinyCommit);
  get_update();
  wait_a_day();
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, OldSnapshotIsKeptUntilTheNewOneIsWhole) {
  get();
  get_update();
  wait_a_day();
  const std::string weights = blob(fake_.files.at("model.safetensors"));
  ASSERT_TRUE(fs_->remove(join_path(kRepo, weights)).is_ok());
  EXPECT_THAT(found(), IsEmpty());
  // Nor where main names what isn't there at all.
  write("refs/main", std::string(40, 'd'));
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, SnapshotsWithoutAnyRefAreKept) {
  get();
  get_update();
  ASSERT_TRUE(fs_->remove(join_path(kRepo, "refs")).is_ok());
  wait_a_day();
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, OldSnapshotWithAFileOfAUsersOwnIsKept) {
  get();
  write("snapshots/" + std::string(kTinyCommit) + "/kv_config.json", "[]");
  get_update();
  wait_a_day();
  EXPECT_THAT(found(), IsEmpty());
}

// The cache is reached over another path than the links were written for.
TEST_F(GarbageTest, BlobsAreKeptWhereALinkLeadsToNoneByItsText) {
  get();
  const std::string weights =
      join_path(kRepo, "snapshots/" + fake_.commit + "/model.safetensors");
  ASSERT_TRUE(fs_->remove(weights).is_ok());
  ASSERT_TRUE(fs_->create_link(
                     join_path(
                         "/mnt/cache/models--org--tiny",
                         blob(fake_.files.at("model.safetensors"))),
                     weights)
                  .is_ok());
  wait_a_day();
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, LinkAmongBlobsIsNotOurs) {
  get();
  ASSERT_TRUE(fs_->create_link(
                     "../../blobs/ee/" + std::string(64, 'e'),
                     join_path(kRepo, "blobs/" + std::string(64, 'd')))
                  .is_ok());
  wait_a_day();
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(GarbageTest, ModelThatIsBeingFetchedIsLeftAlone) {
  get();
  write("blobs/x.ingle-part", "half");
  Processes other = processes_;
  other.self = {8, "here"};
  const auto lock =
      RepoLock::take(*fs_, clock_, other, kCache, std::string(kTinyRepo));
  ASSERT_TRUE(lock.is_ok());
  for (const auto& report : {find_garbage(place_), remove_garbage(place_)}) {
    ASSERT_TRUE(report.is_ok());
    EXPECT_THAT(report->found, IsEmpty());
    ASSERT_EQ(report->left.size(), 1u);
    EXPECT_THAT(report->left[0].message(), HasSubstr("process 8"));
  }
  EXPECT_TRUE(fs_->exists(join_path(kRepo, "blobs/x.ingle-part")));
}

TEST_F(GarbageTest, RemovedModelLeavesNothing) {
  get();
  uint64_t sum = kTinyCommit.size(); // the ref
  for (const auto& [path, content] : fake_.files) {
    sum += path == "README.md" ? 0 : content.size();
  }
  const auto bytes = remove_repo(place_, std::string(kTinyRepo));
  ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, sum);
  EXPECT_FALSE(fs_->exists(kRepo));
  EXPECT_TRUE(list_repo_names(*fs_, kCache)->empty());
}

TEST_F(GarbageTest, RemovedModelWhoseFolderIsALinkLeavesTheTarget) {
  ASSERT_TRUE(fs_->create_directory("/disk/m/snapshots").is_ok());
  ASSERT_TRUE(fs_->create_directory(kCache).is_ok());
  ASSERT_TRUE(fs_->create_link("/disk/m", kRepo).is_ok());
  EXPECT_EQ(*remove_repo(place_, std::string(kTinyRepo)), 0u);
  EXPECT_TRUE(fs_->exists("/disk/m/snapshots"));
  EXPECT_TRUE(list_repo_names(*fs_, kCache)->empty());
}

TEST_F(GarbageTest, RemovedLinkToAFolderLeavesTheFolder) {
  ASSERT_TRUE(fs_->create_directory("/elsewhere/m").is_ok());
  ASSERT_TRUE(
      write_file(*fs_, "/elsewhere/m/config.json", as_bytes("{}")).is_ok());
  ASSERT_TRUE(fs_->create_link("/elsewhere/m", "/models").is_ok());
  EXPECT_EQ(*remove_folder(*fs_, "/models"), 0u);
  EXPECT_FALSE(fs_->exists("/models"));
  EXPECT_TRUE(fs_->exists("/elsewhere/m/config.json"));
}

TEST_F(GarbageTest, CallThatFailsNeverCostsTheModel) {
  get();
  get_update();
  wait_a_day();
  for (uint64_t n = 1;; ++n) {
    FaultyFileSystem faulty(*fs_, n, StatusCode::kIo);
    const DownloadPlace place{faulty, clock_, processes_, kCache};
    const auto report = remove_garbage(place);
    const std::string folder = join_path(kRepo, "snapshots/" + fake_.commit);
    const auto names = *fs_->list(folder);
    for (const auto& name : names) {
      ASSERT_EQ(*fs_->read(join_path(folder, name)), fake_.files.at(name)) << n;
    }
    if (faulty.calls() < n) {
      EXPECT_GT(n, 20u);
      EXPECT_THAT(found(), IsEmpty());
      return;
    }
  }
}

} // namespace
} // namespace ingle

#include "hub/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/names.h"

namespace ingle {
namespace {

using testing::ElementsAre;

constexpr const char* kCache = "/cache";

class HubCacheTest : public testing::Test {
 protected:
  void write(const std::string& path, std::string_view text) {
    const std::string full = join_path(kCache, path);
    ASSERT_TRUE(fs_->create_directory(parent_path(full)).is_ok());
    ASSERT_TRUE(write_file(*fs_, full, as_bytes(text)).is_ok());
  }
  void add_snapshot(const std::string& commit) {
    ASSERT_TRUE(fs_->create_directory(
                       join_path(kCache, "models--o--m/snapshots/" + commit))
                    .is_ok());
  }
  CachedRepo read() {
    return *read_repo(*fs_, kCache, "o/m");
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  const std::string a_ = std::string(40, 'a');
  const std::string b_ = std::string(40, 'b');
};

TEST_F(HubCacheTest, OnlyModelsAreListed) {
  EXPECT_TRUE(list_repo_names(*fs_, kCache)->empty());
  write("models--o--m/refs/main", a_);
  write("models--gpt2/refs/main", a_);
  write("datasets--o--d/refs/main", a_);
  write(".locks/models--o--x/ingle.lock", "");
  write("blobs/xx", "");
  EXPECT_THAT(*list_repo_names(*fs_, kCache), ElementsAre("gpt2", "o/m"));
}

TEST_F(HubCacheTest, canonical_snapshot) {
  EXPECT_EQ(read().canonical_snapshot(), std::nullopt); // not there
  add_snapshot(a_);
  EXPECT_EQ(read().canonical_snapshot(), a_); // the only one
  add_snapshot(b_);
  EXPECT_EQ(read().canonical_snapshot(), std::nullopt); // which?
  write("models--o--m/refs/v1", a_);
  EXPECT_EQ(read().canonical_snapshot(), std::nullopt);
  write("models--o--m/refs/main", b_);
  EXPECT_EQ(read().canonical_snapshot(), b_);
  // A main whose snapshot isn't there yet is not another's.
  write("models--o--m/refs/main", std::string(40, 'c'));
  EXPECT_EQ(read().canonical_snapshot(), std::nullopt);
}

TEST_F(HubCacheTest, SnapshotIsFoundByBranchTagAndCommit) {
  add_snapshot(a_);
  add_snapshot(b_);
  write("models--o--m/refs/main", a_ + "\n");
  write("models--o--m/refs/refs/pr/1", b_);
  EXPECT_EQ(read().snapshot_of("main"), a_);
  EXPECT_EQ(read().snapshot_of("refs/pr/1"), b_);
  EXPECT_EQ(read().snapshot_of(b_), b_);
  EXPECT_EQ(read().snapshot_of("v2"), std::nullopt);
}

TEST_F(HubCacheTest, RefsThatHoldNoCommitAreNone) {
  add_snapshot(a_);
  write("models--o--m/refs/main", "../../../etc");
  write("models--o--m/refs/v1", "");
  EXPECT_TRUE(read().refs.empty());
  ASSERT_TRUE(fs_->create_directory("/cache/models--o--m/snapshots/x").is_ok());
  EXPECT_THAT(read().snapshots, ElementsAre(a_));
}

TEST_F(HubCacheTest, FilesOfASnapshotNameTheirBlobs) {
  write("models--o--m/blobs/1", "x");
  const std::string folder = "/cache/models--o--m/snapshots/" + a_;
  write("models--o--m/snapshots/" + a_ + "/copy", "x");
  ASSERT_TRUE(fs_->create_directory(join_path(folder, "sub")).is_ok());
  const auto link = [&](const std::string& path, const std::string& target) {
    EXPECT_TRUE(fs_->create_link(target, join_path(folder, path)).is_ok());
  };
  link("top", "../../blobs/1");
  link("sub/deep", "../../../blobs/1");
  link("absolute", "/cache/models--o--m/blobs/1");
  link("out", "../../../../etc/passwd");
  link("gone", "../../blobs/2");
  std::map<std::string, std::string> blobs;
  const auto files = *list_snapshot(*fs_, folder);
  for (const SnapshotFile& file : files) {
    blobs[file.path] = file.blob;
  }
  EXPECT_EQ(
      blobs,
      (std::map<std::string, std::string>{
          {"absolute", "1"},
          {"copy", ""},
          {"gone", "2"},
          {"out", ""},
          {"sub/deep", "1"},
          {"top", "1"}}));
}

} // namespace
} // namespace ingle

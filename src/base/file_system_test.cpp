#include "base/file_system.h"

#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_system_faulty.h"

namespace ingle {
namespace {

// One corpus, run over the posix and the memory form.
class FileSystemTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
      fs_ = make_posix_file_system();
      std::string name = testing::TempDir() + "ingle-fs-XXXXXX";
      ASSERT_NE(::mkdtemp(name.data()), nullptr);
      root_ = name;
    } else {
      fs_ = make_memory_file_system();
      root_ = "/root";
      ASSERT_TRUE(fs_->create_directory(root_).is_ok());
    }
  }
  void TearDown() override {
    EXPECT_TRUE(fs_->remove(root_).is_ok());
  }
  std::string at(std::string_view name) const {
    return join_path(root_, name);
  }
  void write(std::string_view name, std::string_view text) {
    ASSERT_TRUE(write_file(*fs_, at(name), as_bytes(text)).is_ok());
  }

  std::unique_ptr<FileSystem> fs_;
  std::string root_;
};

INSTANTIATE_TEST_SUITE_P(
    Forms,
    FileSystemTest,
    testing::Bool(),
    [](const auto& form) { return form.param ? "posix" : "memory"; });

TEST_P(FileSystemTest, ReadsBackWhatWasWritten) {
  write("a", "hello");
  EXPECT_EQ(*fs_->read(at("a")), "hello");
  EXPECT_EQ(as_text((*fs_->map(at("a")))->bytes()), "hello");
  EXPECT_EQ(fs_->stat(at("a"))->size, 5u);
}

TEST_P(FileSystemTest, ReleasedPartOfAMapReadsTheSame) {
  std::string text;
  for (int i = 0; text.size() < 50000; ++i) {
    text += std::to_string(i);
  }
  write("a", text);
  const auto file = *fs_->map(at("a"));
  file->release(file->bytes().subspan(1, 40000));
  file->release(file->bytes().subspan(7, 5));
  file->release(file->bytes());
  EXPECT_EQ(as_text(file->bytes()), text);
}

TEST_P(FileSystemTest, EmptyFileMapsToNoBytes) {
  write("empty", "");
  EXPECT_TRUE((*fs_->map(at("empty")))->bytes().empty());
}

TEST_P(FileSystemTest, CreateTruncates) {
  write("a", "long text");
  write("a", "x");
  EXPECT_EQ(*fs_->read(at("a")), "x");
}

TEST_P(FileSystemTest, CreateNewLeavesWhatHasTheName) {
  write("a", "old");
  const auto taken = fs_->create_new(at("a"));
  ASSERT_TRUE(taken.is_ok());
  EXPECT_EQ(*taken, nullptr);
  EXPECT_EQ(*fs_->read(at("a")), "old");
  ASSERT_TRUE(fs_->create_directory(at("folder")).is_ok());
  EXPECT_EQ(*fs_->create_new(at("folder")), nullptr);
  ASSERT_TRUE(fs_->create_link("nowhere", at("link")).is_ok());
  EXPECT_EQ(*fs_->create_new(at("link")), nullptr);

  const auto file = fs_->create_new(at("b"));
  ASSERT_TRUE(file.is_ok() && *file != nullptr);
  EXPECT_TRUE((*file)->append(as_bytes("new")).is_ok());
  EXPECT_TRUE((*file)->close().is_ok());
  EXPECT_EQ(*fs_->read(at("b")), "new");
  EXPECT_EQ(
      fs_->create_new(at("no/folder")).status().code(), StatusCode::kNotFound);
}

TEST_P(FileSystemTest, AppendGoesOnAtTheEnd) {
  write("a", "one");
  const auto file = fs_->open_to_append(at("a"));
  ASSERT_TRUE(file.is_ok());
  EXPECT_TRUE((*file)->append(as_bytes(" two")).is_ok());
  EXPECT_TRUE((*file)->close().is_ok());
  EXPECT_EQ(*fs_->read(at("a")), "one two");
  EXPECT_EQ(
      fs_->open_to_append(at("none")).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(fs_->exists(at("none")));
}

TEST_P(FileSystemTest, LinkLeadsToItsTarget) {
  ASSERT_TRUE(fs_->create_directory(at("blobs")).is_ok());
  ASSERT_TRUE(fs_->create_directory(at("snapshots/x")).is_ok());
  write("blobs/b", "text");
  const std::string link = at("snapshots/x/file");
  ASSERT_TRUE(fs_->create_link("../../blobs/b", link).is_ok());
  EXPECT_EQ(*fs_->read_link(link), "../../blobs/b");
  EXPECT_EQ(*fs_->read(link), "text");
  EXPECT_EQ(as_text((*fs_->map(link))->bytes()), "text");
  EXPECT_EQ(fs_->stat(link)->size, 4u);
  EXPECT_EQ(*fs_->list(at("snapshots/x")), std::vector<std::string>{"file"});
  EXPECT_EQ(fs_->create_link("other", link).code(), StatusCode::kIo); // taken
}

TEST_P(FileSystemTest, RemovedLinkLeavesItsTarget) {
  write("target", "text");
  ASSERT_TRUE(fs_->create_link("target", at("link")).is_ok());
  EXPECT_TRUE(fs_->remove(at("link")).is_ok());
  EXPECT_EQ(fs_->read_link(at("link")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(*fs_->read(at("target")), "text");
}

TEST_P(FileSystemTest, LinkToNowhereIsThereButReadsAsNotFound) {
  ASSERT_TRUE(fs_->create_link("nowhere", at("link")).is_ok());
  EXPECT_EQ(*fs_->read_link(at("link")), "nowhere");
  EXPECT_EQ(fs_->stat(at("link")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(fs_->read(at("link")).status().code(), StatusCode::kNotFound);
}

TEST_P(FileSystemTest, FileAndFolderAreNoLinks) {
  write("a", "text");
  EXPECT_EQ(*fs_->read_link(at("a")), std::nullopt);
  EXPECT_EQ(*fs_->read_link(root_), std::nullopt);
}

TEST_P(FileSystemTest, MissingFileIsNotFoundAndNamesThePath) {
  const Status status = fs_->read(at("none")).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find(at("none")), std::string::npos);
  EXPECT_EQ(fs_->map(at("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(fs_->stat(at("none")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(
      fs_->create(at("no/folder")).status().code(), StatusCode::kNotFound);
}

TEST_P(FileSystemTest, ListsNamesSorted) {
  write("b", "");
  write("a", "");
  ASSERT_TRUE(fs_->create_directory(at("c/d")).is_ok());
  EXPECT_EQ(*fs_->list(root_), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_P(FileSystemTest, RenamesAFolderWithItsContent) {
  ASSERT_TRUE(fs_->create_directory(at("tmp/x")).is_ok());
  write("tmp/x/file", "1");
  ASSERT_TRUE(fs_->rename(at("tmp"), at("final")).is_ok());
  EXPECT_EQ(*fs_->read(at("final/x/file")), "1");
  EXPECT_FALSE(fs_->exists(at("tmp")));
}

TEST_P(FileSystemTest, RenameDoesNotReplaceAFilledFolder) {
  ASSERT_TRUE(fs_->create_directory(at("tmp")).is_ok());
  ASSERT_TRUE(fs_->create_directory(at("final")).is_ok());
  write("final/precious", "1");
  EXPECT_FALSE(fs_->rename(at("tmp"), at("final")).is_ok());
  EXPECT_EQ(*fs_->read(at("final/precious")), "1");
}

TEST_P(FileSystemTest, RenameDoesNotMixFilesAndFolders) {
  write("file", "1");
  ASSERT_TRUE(fs_->create_directory(at("folder")).is_ok());
  EXPECT_FALSE(fs_->rename(at("file"), at("folder")).is_ok());
  EXPECT_FALSE(fs_->rename(at("folder"), at("file")).is_ok());
  EXPECT_EQ(*fs_->read(at("file")), "1");
}

TEST_P(FileSystemTest, RemoveTakesAFolderAndForgivesAbsence) {
  ASSERT_TRUE(fs_->create_directory(at("d")).is_ok());
  write("d/file", "1");
  EXPECT_TRUE(fs_->remove(at("d")).is_ok());
  EXPECT_FALSE(fs_->exists(at("d")));
  EXPECT_TRUE(fs_->remove(at("d")).is_ok());
}

TEST_P(FileSystemTest, ReadingAFolderAsAFileFails) {
  EXPECT_FALSE(fs_->read(root_).is_ok());
  EXPECT_FALSE(fs_->map(root_).is_ok());
}

TEST_P(FileSystemTest, LockKeepsOthersOut) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 25;
  write("count", "0");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const auto lock = fs_->lock(at("lock"));
        ASSERT_TRUE(lock.is_ok()) << lock.status().message();
        const int count = std::stoi(*fs_->read(at("count")));
        write("count", std::to_string(count + 1));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(*fs_->read(at("count")), std::to_string(kThreads * kRounds));
}

TEST_P(FileSystemTest, LockMakesAFileAndLeavesOneAsItIs) {
  EXPECT_TRUE(fs_->lock(at("new")).is_ok());
  EXPECT_EQ(*fs_->read(at("new")), "");
  write("old", "text");
  EXPECT_TRUE(fs_->lock(at("old")).is_ok());
  EXPECT_EQ(*fs_->read(at("old")), "text");
}

TEST_P(FileSystemTest, LocksOnTwoPathsAreHeldSideBySide) {
  const auto first = fs_->lock(at("first"));
  const auto second = fs_->lock(at("second"));
  EXPECT_TRUE(first.is_ok() && second.is_ok());
}

TEST_P(FileSystemTest, LockWhereNoFileCanBeFails) {
  EXPECT_EQ(fs_->lock(at("no/lock")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(fs_->lock(root_).status().code(), StatusCode::kIo);
}

TEST(FaultyFileSystem, LockThatFailsIsNotHeld) {
  const auto memory = make_memory_file_system();
  FaultyFileSystem faulty(*memory, 1, StatusCode::kIo);
  EXPECT_EQ(faulty.lock("/lock").status().code(), StatusCode::kIo);
  EXPECT_TRUE(faulty.lock("/lock").is_ok());
}

TEST(PosixFileSystem, FileSaysWhenItWasWritten) {
  const auto fs = make_posix_file_system();
  const std::string path = testing::TempDir() + "ingle-modified";
  ASSERT_TRUE(write_file(*fs, path, as_bytes("x")).is_ok());
  const auto age = SystemClock().since_epoch() - fs->stat(path)->modified;
  EXPECT_LT(std::chrono::abs(age), std::chrono::seconds(60));
  EXPECT_TRUE(fs->remove(path).is_ok());
}

TEST(PosixFileSystem, ProcessThatEndsHoldsNoLock) {
  const auto fs = make_posix_file_system();
  const std::string path = testing::TempDir() + "ingle-lock";
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = fs->lock(path);
    ::_exit(lock.is_ok() ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_TRUE(fs->lock(path).is_ok());
  EXPECT_TRUE(fs->remove(path).is_ok());
}

TEST(PosixFileSystem, HugeFileIsNotReadWhole) {
  const auto fs = make_posix_file_system();
  const std::string path = testing::TempDir() + "ingle-sparse";
  ASSERT_TRUE(write_file(*fs, path, as_bytes("x")).is_ok());
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(fs->read(path).status().code(), StatusCode::kCorruption);
  EXPECT_TRUE(fs->remove(path).is_ok());
}

TEST(FaultyFileSystem, FailsEveryCallOnceAndWriteFileLeavesNothing) {
  for (uint64_t n = 1;; ++n) {
    auto memory = make_memory_file_system();
    FaultyFileSystem faulty(*memory, n, StatusCode::kNoSpace);
    const Status status = write_file(faulty, "/f", as_bytes("text"));
    if (status.is_ok()) {
      EXPECT_GT(n, 4u); // create, append, sync and close were failed
      return;
    }
    EXPECT_EQ(status.code(), StatusCode::kNoSpace);
    EXPECT_FALSE(memory->exists("/f"));
  }
}

TEST(Paths, JoinParentAndBaseName) {
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(base_name("a/b.c"), "b.c");
}

} // namespace
} // namespace ingle

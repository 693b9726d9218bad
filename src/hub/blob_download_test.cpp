#include "hub/blob_download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_system_faulty.h"
#include "hub/testing/fake_hub.h"

namespace ingle {
namespace {

using testing::HasSubstr;

constexpr const char* kBlobs = "/blobs";

class BlobDownloadTest : public testing::Test {
 protected:
  BlobDownloadTest() {
    for (int i = 0; content_.size() < 1000; ++i) {
      content_ += std::to_string(i);
    }
    file_ = {
        "model.safetensors",
        etag_of("model.safetensors", content_),
        content_.size()};
    EXPECT_TRUE(fs_->create_directory(kBlobs).is_ok());
  }

  std::string blob() const {
    return join_path(kBlobs, file_.etag);
  }
  std::string part() const {
    return blob() + ".ingle-part";
  }
  void write(const std::string& path, std::string_view text) {
    ASSERT_TRUE(write_file(*fs_, path, as_bytes(text)).is_ok());
  }

  // Gives `content` from what is there on, in small pieces, `count` bytes of
  // it.
  Status run(std::string_view content, size_t count, FileSystem* fs = nullptr) {
    BlobDownload download(
        fs == nullptr ? *fs_ : *fs, kBlobs, file_, [](uint64_t) {
          return Status::ok();
        });
    const Status status = download.run([&](const Hub::Body& body) {
      first_ = download.bytes_there();
      const size_t end = std::min(content.size(), first_ + count);
      for (size_t at = first_; at < end; at += 64) {
        const auto piece = content.substr(at, std::min<size_t>(64, end - at));
        INGLE_RETURN_IF_ERROR(body(at, as_bytes(piece)));
      }
      return end < content.size() ? Status::io("cut") : Status::ok();
    });
    fetched_ = download.bytes_fetched();
    return status;
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  std::string content_;
  HubFile file_;
  size_t first_ = 0; // byte that was asked for
  uint64_t fetched_ = 0;
};

TEST_F(BlobDownloadTest, WholeFileBecomesABlob) {
  EXPECT_EQ(missing_bytes(*fs_, kBlobs, file_), content_.size());
  ASSERT_TRUE(run(content_, content_.size()).is_ok());
  EXPECT_EQ(*fs_->read(blob()), content_);
  EXPECT_FALSE(fs_->exists(part()));
  EXPECT_EQ(missing_bytes(*fs_, kBlobs, file_), 0u);
}

TEST_F(BlobDownloadTest, BlobThatIsThereIsNotFetched) {
  write(blob(), content_);
  ASSERT_TRUE(run("", 0).is_ok());
  EXPECT_EQ(fetched_, 0u);
}

TEST_F(BlobDownloadTest, EmptyFileIsMade) {
  file_ = {"empty.json", etag_of("empty.json", ""), 0};
  ASSERT_TRUE(run("", 0).is_ok());
  EXPECT_EQ(*fs_->read(blob()), "");
}

TEST_F(BlobDownloadTest, download_resume_range) {
  const Status cut = run(content_, 400);
  EXPECT_EQ(cut.code(), StatusCode::kIo);
  EXPECT_EQ(fs_->stat(part())->size, 400u);
  EXPECT_EQ(missing_bytes(*fs_, kBlobs, file_), content_.size() - 400);

  ASSERT_TRUE(run(content_, content_.size()).is_ok());
  EXPECT_EQ(first_, 400u);
  EXPECT_EQ(fetched_, content_.size() - 400);
  EXPECT_EQ(*fs_->read(blob()), content_);
}

TEST_F(BlobDownloadTest, HashIsTakenOverWhatWasThere) {
  write(part(), std::string(400, 'x')); // damaged
  const Status status = run(content_, content_.size());
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_FALSE(fs_->exists(part()));
  EXPECT_FALSE(fs_->exists(blob()));
  EXPECT_TRUE(run(content_, content_.size()).is_ok());
}

TEST_F(BlobDownloadTest, PartThatIsWholeIsOnlyHashed) {
  write(part(), content_);
  ASSERT_TRUE(run("", 0).is_ok());
  EXPECT_EQ(fetched_, 0u);
  EXPECT_EQ(*fs_->read(blob()), content_);
}

TEST_F(BlobDownloadTest, PartThatIsTooLongIsThrownAway) {
  write(part(), content_ + "more");
  ASSERT_TRUE(run(content_, content_.size()).is_ok());
  EXPECT_EQ(first_, 0u);
  EXPECT_EQ(*fs_->read(blob()), content_);
}

TEST_F(BlobDownloadTest, ServerThatStartsOverIsFollowed) {
  write(part(), content_.substr(0, 300));
  BlobDownload download(
      *fs_, kBlobs, file_, [](uint64_t) { return Status::ok(); });
  const Status status = download.run(
      [&](const Hub::Body& body) { return body(0, as_bytes(content_)); });
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(*fs_->read(blob()), content_);
}

TEST_F(BlobDownloadTest, checksum_mismatch_removes) {
  const std::string other(content_.size(), 'x');
  const Status status = run(other, other.size());
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_THAT(status.message(), HasSubstr("hash"));
  EXPECT_THAT(status.message(), HasSubstr("'model.safetensors'"));
  EXPECT_EQ(fs_->list(kBlobs)->size(), 0u);
}

TEST_F(BlobDownloadTest, MoreThanTheFileHasIsRefused) {
  const std::string longer = content_ + "more";
  EXPECT_EQ(run(longer, longer.size()).code(), StatusCode::kCorruption);
  EXPECT_EQ(fs_->list(kBlobs)->size(), 0u);
}

TEST_F(BlobDownloadTest, StepThatFailsEndsItAndKeepsThePart) {
  BlobDownload download(*fs_, kBlobs, file_, [](uint64_t there) {
    return there < 500 ? Status::ok() : Status::cancelled("interrupted");
  });
  const Status status = download.run([&](const Hub::Body& body) {
    INGLE_RETURN_IF_ERROR(body(0, as_bytes(content_).first(500)));
    return body(500, as_bytes(content_).subspan(500));
  });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(fs_->stat(part())->size, 500u);
}

TEST_F(BlobDownloadTest, DiskThatFillsUpKeepsWhatCanBeGoneOnWith) {
  for (uint64_t n = 1;; ++n) {
    FaultyFileSystem faulty(*fs_, n, StatusCode::kNoSpace, /*sticky=*/true);
    const Status status = run(content_, content_.size(), &faulty);
    if (status.is_ok()) {
      EXPECT_GT(n, 15u);
      return;
    }
    EXPECT_EQ(status.code(), StatusCode::kNoSpace) << n;
    EXPECT_FALSE(fs_->exists(blob())) << n;
    const size_t kept = fs_->exists(part()) ? fs_->stat(part())->size : 0;
    ASSERT_TRUE(run(content_, content_.size()).is_ok()) << n;
    EXPECT_EQ(fetched_, content_.size() - kept) << n;
    EXPECT_EQ(*fs_->read(blob()), content_);
    ASSERT_TRUE(fs_->remove(blob()).is_ok());
  }
}

} // namespace
} // namespace ingle

// A file system that fails one call of another; for tests.
//
// Threads: one.
#pragma once

#include "base/file_system.h"

namespace ingle {

// Counts every call of `inner` (those of its files too) and fails call number
// `fail_at` (from 1) with `code`. Later calls go through, unless `sticky`.
// `fail_at` 0 fails none, so that calls() tells how many a scenario makes.
class FaultyFileSystem final : public FileSystem {
 public:
  FaultyFileSystem(
      FileSystem& inner,
      uint64_t fail_at,
      StatusCode code,
      bool sticky = false);

  uint64_t calls() const {
    return state_->calls;
  }

  Result<std::shared_ptr<MappedFile>> map(const std::string& path) override;
  Result<std::string> read(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create_new(
      const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> open_to_append(
      const std::string& path) override;
  Status create_link(const std::string& target, const std::string& path)
      override;
  Result<std::optional<std::string>> read_link(
      const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status create_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<FileInfo> stat(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<SpaceInfo> space(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;

  struct State {
    uint64_t calls = 0;
    uint64_t fail_at = 0;
    StatusCode code = StatusCode::kIo;
    bool sticky = false;

    // Counts a call on `path`; not ok where it is the one to fail.
    Status enter(const std::string& path);
  };

 private:
  FileSystem& inner_;
  std::shared_ptr<State> state_;
};

} // namespace ingle

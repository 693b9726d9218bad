// A disk that fills up; for tests.
//
// Threads: one.
#pragma once

#include "base/file_system.h"

namespace ingle {

// A disk with room for `bytes` more: every append past it fails, as do all
// later ones, while removing works.
class SmallDisk final : public FileSystem {
 public:
  SmallDisk(FileSystem& inner, uint64_t bytes) : inner_(inner), left_(bytes) {}

  Result<std::shared_ptr<MappedFile>> map(const std::string& path) override {
    return inner_.map(path);
  }
  Result<std::string> read(const std::string& path) override {
    return inner_.read(path);
  }
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(auto file, inner_.create(path));
    return std::unique_ptr<WritableFile>(
        std::make_unique<File>(*this, std::move(file), path));
  }
  Result<std::unique_ptr<WritableFile>> create_new(
      const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(auto file, inner_.create_new(path));
    if (file == nullptr) {
      return file;
    }
    return std::unique_ptr<WritableFile>(
        std::make_unique<File>(*this, std::move(file), path));
  }
  Result<std::unique_ptr<WritableFile>> open_to_append(
      const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(auto file, inner_.open_to_append(path));
    return std::unique_ptr<WritableFile>(
        std::make_unique<File>(*this, std::move(file), path));
  }
  Status create_link(const std::string& target, const std::string& path)
      override {
    return inner_.create_link(target, path);
  }
  Result<std::optional<std::string>> read_link(
      const std::string& path) override {
    return inner_.read_link(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return inner_.rename(from, to);
  }
  Status remove(const std::string& path) override {
    return inner_.remove(path);
  }
  Status create_directory(const std::string& path) override {
    return inner_.create_directory(path);
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return inner_.list(path);
  }
  Result<FileInfo> stat(const std::string& path) override {
    return inner_.stat(path);
  }
  Status sync_directory(const std::string& path) override {
    return inner_.sync_directory(path);
  }
  Result<SpaceInfo> space(const std::string&) override {
    return SpaceInfo{left_, reports_space ? left_ : UINT64_MAX};
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return inner_.lock(path);
  }

  bool reports_space = false;

 private:
  class File final : public WritableFile {
   public:
    File(SmallDisk& disk, std::unique_ptr<WritableFile> inner, std::string path)
        : disk_(disk), inner_(std::move(inner)), path_(std::move(path)) {}
    Status append(ByteView bytes) override {
      if (bytes.size() > disk_.left_) {
        disk_.left_ = 0;
        return Status::no_space(path_ + ": No space left on device");
      }
      disk_.left_ -= bytes.size();
      return inner_->append(bytes);
    }
    Status sync() override {
      return inner_->sync();
    }
    Status close() override {
      return inner_->close();
    }

   private:
    SmallDisk& disk_;
    std::unique_ptr<WritableFile> inner_;
    std::string path_;
  };

  FileSystem& inner_;
  uint64_t left_;
};

} // namespace ingle

#include "base/file_system.h"

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

namespace ingle {
namespace {

// A file, or a link.
struct Node {
  std::string text;
  std::chrono::seconds modified{}; // since the epoch
  std::optional<std::string> target; // of a link
};

using Content = std::shared_ptr<Node>;

std::chrono::seconds time_of(const Clock* clock) {
  return clock == nullptr
      ? std::chrono::seconds()
      : std::chrono::floor<std::chrono::seconds>(clock->since_epoch());
}

class MemoryMappedFile final : public MappedFile {
 public:
  explicit MemoryMappedFile(Content content) : content_(std::move(content)) {}
  ByteView bytes() const override {
    return as_bytes(content_->text);
  }

 private:
  Content content_;
};

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(Content content, std::mutex& mutex, const Clock* clock)
      : content_(std::move(content)), mutex_(mutex), clock_(clock) {}
  Status append(ByteView bytes) override {
    std::lock_guard lock(mutex_);
    content_->text.append(as_text(bytes));
    content_->modified = time_of(clock_);
    return Status::ok();
  }
  Status sync() override {
    return Status::ok();
  }
  Status close() override {
    return Status::ok();
  }

 private:
  Content content_;
  std::mutex& mutex_; // the file system's, which outlives its files
  const Clock* clock_;
};

// The paths that are locked.
class LockedPaths {
 public:
  void lock(const std::string& path) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return paths_.count(path) == 0; });
    paths_.insert(path);
  }
  void unlock(const std::string& path) {
    std::lock_guard lock(mutex_);
    paths_.erase(path);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> paths_;
};

class MemoryFileLock final : public FileLock {
 public:
  MemoryFileLock(LockedPaths& locked, std::string path)
      : locked_(locked), path_(std::move(path)) {
    locked_.lock(path_);
  }
  MemoryFileLock(const MemoryFileLock&) = delete;
  MemoryFileLock& operator=(const MemoryFileLock&) = delete;
  ~MemoryFileLock() override {
    locked_.unlock(path_);
  }

 private:
  LockedPaths& locked_; // the file system's, which outlives its locks
  const std::string path_;
};

Status missing(const std::string& path) {
  return Status::not_found(path + ": No such file or directory");
}

// Absolute or relative paths are both only names here; "." is the root of the
// relative ones and always exists, as does "/".
class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(const Clock* clock) : clock_(clock) {}

  Result<std::shared_ptr<MappedFile>> map(const std::string& path) override {
    std::lock_guard lock(mutex_);
    INGLE_ASSIGN_OR_RETURN(auto content, find(path));
    return std::shared_ptr<MappedFile>(
        std::make_shared<MemoryMappedFile>(std::move(content)));
  }

  Result<std::string> read(const std::string& path) override {
    std::lock_guard lock(mutex_);
    INGLE_ASSIGN_OR_RETURN(const auto content, find(path));
    return content->text;
  }

  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override {
    std::lock_guard lock(mutex_);
    INGLE_RETURN_IF_ERROR(check_place_of_file(path));
    return open(add(destination(path)));
  }

  Result<std::unique_ptr<WritableFile>> create_new(
      const std::string& path) override {
    std::lock_guard lock(mutex_);
    if (files_.count(path) != 0 || is_directory(path)) {
      return std::unique_ptr<WritableFile>();
    }
    INGLE_RETURN_IF_ERROR(check_place_of_file(path));
    return open(add(path));
  }

  Result<std::unique_ptr<WritableFile>> open_to_append(
      const std::string& path) override {
    std::lock_guard lock(mutex_);
    INGLE_ASSIGN_OR_RETURN(auto content, find(path));
    return open(std::move(content));
  }

  Status create_link(const std::string& target, const std::string& path)
      override {
    std::lock_guard lock(mutex_);
    if (files_.count(path) != 0) {
      return Status::io(path + ": File exists");
    }
    INGLE_RETURN_IF_ERROR(check_place_of_file(path));
    add(path)->target = target;
    return Status::ok();
  }

  Result<std::optional<std::string>> read_link(
      const std::string& path) override {
    std::lock_guard lock(mutex_);
    if (const auto it = files_.find(path); it != files_.end()) {
      return it->second->target;
    }
    if (is_directory(path)) {
      return std::optional<std::string>();
    }
    return missing(path);
  }

  Status rename(const std::string& from, const std::string& to) override {
    std::lock_guard lock(mutex_);
    if (!is_directory(parent_path(to))) {
      return missing(to);
    }
    if (const auto it = files_.find(from); it != files_.end()) {
      if (is_directory(to)) {
        return Status::io(from + " -> " + to + ": Is a directory");
      }
      files_[to] = it->second;
      files_.erase(from);
      touch_parent(from);
      touch_parent(to);
      return Status::ok();
    }
    if (folders_.count(from) == 0) {
      return missing(from);
    }
    if (files_.count(to) != 0) {
      return Status::io(from + " -> " + to + ": Not a directory");
    }
    if (has_children(to)) {
      return Status::io(from + " -> " + to + ": Directory not empty");
    }
    move_folder(from, to);
    return Status::ok();
  }

  Status remove(const std::string& path) override {
    std::lock_guard lock(mutex_);
    if (files_.erase(path) + folders_.erase(path) > 0) {
      touch_parent(path);
    }
    const std::string prefix = path + "/";
    std::erase_if(files_, [&](const auto& entry) {
      return entry.first.starts_with(prefix);
    });
    std::erase_if(folders_, [&](const auto& folder) {
      return folder.first.starts_with(prefix);
    });
    return Status::ok();
  }

  Status create_directory(const std::string& path) override {
    std::lock_guard lock(mutex_);
    for (std::string at = path; !is_directory(at); at = parent_path(at)) {
      if (files_.count(at) != 0) {
        return Status::io(at + ": File exists");
      }
      folders_[at] = time_of(clock_);
      touch_parent(at);
    }
    return Status::ok();
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    std::lock_guard lock(mutex_);
    if (!is_directory(path)) {
      return missing(path);
    }
    std::set<std::string> names;
    for (const auto& [file, content] : files_) {
      if (parent_path(file) == path) {
        names.insert(base_name(file));
      }
    }
    for (const auto& [folder, modified] : folders_) {
      if (parent_path(folder) == path) {
        names.insert(base_name(folder));
      }
    }
    return std::vector<std::string>(names.begin(), names.end());
  }

  Result<FileInfo> stat(const std::string& path) override {
    std::lock_guard lock(mutex_);
    const std::string place = destination(path);
    if (is_directory(place)) {
      const auto folder = folders_.find(place);
      return FileInfo{
          0,
          true,
          folder == folders_.end() ? std::chrono::seconds() : folder->second};
    }
    INGLE_ASSIGN_OR_RETURN(const auto content, find(path));
    return FileInfo{content->text.size(), false, content->modified};
  }

  Status sync_directory(const std::string& path) override {
    std::lock_guard lock(mutex_);
    return is_directory(path) ? Status::ok() : missing(path);
  }

  Result<SpaceInfo> space(const std::string&) override {
    constexpr uint64_t kPlenty = uint64_t{1} << 40;
    return SpaceInfo{kPlenty, kPlenty};
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    {
      std::lock_guard lock(mutex_);
      INGLE_RETURN_IF_ERROR(check_place_of_file(path));
      if (files_.count(path) == 0) {
        add(path);
      }
    }
    return std::unique_ptr<FileLock>(
        std::make_unique<MemoryFileLock>(locked_, path));
  }

 private:
  // Where the links that `path` ends with lead.
  std::string destination(std::string path) const {
    constexpr int kMaxLinks = 8;
    for (int i = 0; i < kMaxLinks; ++i) {
      const auto it = files_.find(path);
      if (it == files_.end() || !it->second->target) {
        break;
      }
      // An absolute target stands for itself.
      path = (std::filesystem::path(parent_path(path)) / *it->second->target)
                 .lexically_normal()
                 .string();
    }
    return path;
  }

  Result<Content> find(const std::string& path) const {
    const auto it = files_.find(destination(path));
    if (it == files_.end() || it->second->target) {
      return missing(path);
    }
    return it->second;
  }

  Content add(const std::string& path) {
    auto content = std::make_shared<Node>();
    content->modified = time_of(clock_);
    files_[path] = content;
    touch_parent(path);
    return content;
  }

  // Something came into the folder, or left it.
  void touch_parent(const std::string& path) {
    const auto folder = folders_.find(parent_path(path));
    if (folder != folders_.end()) {
      folder->second = time_of(clock_);
    }
  }

  Result<std::unique_ptr<WritableFile>> open(Content content) {
    return std::unique_ptr<WritableFile>(std::make_unique<MemoryWritableFile>(
        std::move(content), mutex_, clock_));
  }

  // Not ok where no file can be.
  Status check_place_of_file(const std::string& path) const {
    if (!is_directory(parent_path(path))) {
      return missing(path);
    }
    return is_directory(path) ? Status::io(path + ": Is a directory")
                              : Status::ok();
  }

  bool is_directory(const std::string& path) const {
    return path == "." || path == "/" || folders_.count(path) != 0;
  }

  bool has_children(const std::string& path) const {
    const std::string prefix = path + "/";
    const auto file = files_.lower_bound(prefix);
    const auto folder = folders_.lower_bound(prefix);
    return (file != files_.end() && file->first.starts_with(prefix)) ||
        (folder != folders_.end() && folder->first.starts_with(prefix));
  }

  void move_folder(const std::string& from, const std::string& to) {
    const std::string prefix = from + "/";
    std::map<std::string, Content> moved_files;
    std::map<std::string, std::chrono::seconds> moved_folders = {
        {to, folders_[from]}};
    for (const auto& [path, content] : files_) {
      const bool inside = path.starts_with(prefix);
      moved_files[inside ? to + path.substr(from.size()) : path] = content;
    }
    for (const auto& [path, modified] : folders_) {
      if (path != from) {
        const bool inside = path.starts_with(prefix);
        moved_folders[inside ? to + path.substr(from.size()) : path] = modified;
      }
    }
    files_ = std::move(moved_files);
    folders_ = std::move(moved_folders);
    touch_parent(from);
    touch_parent(to);
  }

  const Clock* clock_;
  std::mutex mutex_;
  std::map<std::string, Content> files_;
  std::map<std::string, std::chrono::seconds> folders_; // when they changed
  LockedPaths locked_;
};

} // namespace

std::unique_ptr<FileSystem> make_memory_file_system(const Clock* clock) {
  return std::make_unique<MemoryFileSystem>(clock);
}

} // namespace ingle

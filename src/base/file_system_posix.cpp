#include "base/file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace ingle {
namespace {

Status from_errno(const std::string& path, int error) {
  std::string message = path + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Status::not_found(std::move(message));
    case ENOSPC:
    case EDQUOT:
      return Status::no_space(std::move(message));
    default:
      return Status::io(std::move(message));
  }
}

Result<UniqueFd> open_fd(const std::string& path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return from_errno(path, errno);
  }
  return UniqueFd(fd);
}

// The open file and its size. Folders, devices and the like are refused.
struct RegularFile {
  UniqueFd fd;
  size_t size = 0; // bytes
};

Result<RegularFile> open_regular(const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(auto fd, open_fd(path, O_RDONLY | O_NONBLOCK));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) {
    return from_errno(path, errno);
  }
  if (!S_ISREG(info.st_mode)) {
    return Status::io(path + ": not a regular file");
  }
  return RegularFile{std::move(fd), static_cast<size_t>(info.st_size)};
}

class PosixMappedFile final : public MappedFile {
 public:
  PosixMappedFile(void* address, size_t size)
      : address_(address), size_(size) {}
  PosixMappedFile(const PosixMappedFile&) = delete;
  PosixMappedFile& operator=(const PosixMappedFile&) = delete;
  ~PosixMappedFile() override {
    if (size_ != 0) {
      ::munmap(address_, size_);
    }
  }
  ByteView bytes() const override {
    return {static_cast<const std::byte*>(address_), size_};
  }
  // Of the pages that it has alone.
  void release(ByteView part) const override {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const auto begin =
        static_cast<size_t>(part.data() - static_cast<std::byte*>(address_));
    const size_t first = (begin + page - 1) / page * page;
    const size_t last = (begin + part.size()) / page * page;
    if (first < last) {
      ::madvise(
          static_cast<std::byte*>(address_) + first,
          last - first,
          MADV_DONTNEED);
    }
  }

 private:
  void* address_;
  size_t size_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(UniqueFd fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)) {}

  Status append(ByteView bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0) {
        if (errno == EINTR) {
          continue;
        }
        return from_errno(path_, errno);
      }
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return Status::ok();
  }

  Status sync() override {
#ifdef F_FULLFSYNC // macOS: fsync() leaves the data in the drive's cache
    if (::fcntl(fd_.get(), F_FULLFSYNC) == 0) {
      return Status::ok();
    }
#endif
    return ::fsync(fd_.get()) == 0 ? Status::ok() : from_errno(path_, errno);
  }

  Status close() override {
    const int error = fd_.close();
    return error == 0 ? Status::ok() : from_errno(path_, error);
  }

 private:
  UniqueFd fd_;
  std::string path_;
};

// Closing the descriptor, which no other process has, lets go of the lock.
class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  UniqueFd fd_;
};

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::shared_ptr<MappedFile>> map(const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(auto file, open_regular(path));
    if (file.size == 0) {
      return std::shared_ptr<MappedFile>(
          std::make_shared<PosixMappedFile>(nullptr, 0));
    }
    void* address =
        ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
    if (address == MAP_FAILED) {
      return from_errno(path, errno);
    }
    return std::shared_ptr<MappedFile>(
        std::make_shared<PosixMappedFile>(address, file.size));
  }

  Result<std::string> read(const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(auto file, open_regular(path));
    if (file.size > kMaxReadBytes) {
      return Status::corruption(
          path + ": " + std::to_string(file.size) +
          " bytes are too many for a file of this kind");
    }
    std::string text(file.size, '\0');
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t n =
          ::read(file.fd.get(), text.data() + done, text.size() - done);
      if (n < 0) {
        if (errno == EINTR) {
          continue;
        }
        return from_errno(path, errno);
      }
      if (n == 0) {
        break; // shrunk while we read
      }
      done += static_cast<size_t>(n);
    }
    text.resize(done);
    return text;
  }

  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(
        auto fd, open_fd(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    return std::unique_ptr<WritableFile>(
        std::make_unique<PosixWritableFile>(std::move(fd), path));
  }

  Result<std::unique_ptr<WritableFile>> create_new(
      const std::string& path) override {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd;
    do {
      fd = ::open(path.c_str(), kFlags, 0600);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno != EEXIST) {
      return from_errno(path, errno);
    }
    std::unique_ptr<WritableFile> file;
    if (fd >= 0) {
      file = std::make_unique<PosixWritableFile>(UniqueFd(fd), path);
    }
    return file;
  }

  Result<std::unique_ptr<WritableFile>> open_to_append(
      const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(auto fd, open_fd(path, O_WRONLY | O_APPEND));
    return std::unique_ptr<WritableFile>(
        std::make_unique<PosixWritableFile>(std::move(fd), path));
  }

  Status create_link(const std::string& target, const std::string& path)
      override {
    return ::symlink(target.c_str(), path.c_str()) == 0
        ? Status::ok()
        : from_errno(path, errno);
  }

  Result<std::optional<std::string>> read_link(
      const std::string& path) override {
    std::error_code error;
    auto target = std::filesystem::read_symlink(path, error);
    if (error.value() == EINVAL) {
      return std::optional<std::string>(); // there, and no link
    }
    if (error) {
      return from_errno(path, error.value());
    }
    return std::optional(target.string());
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) {
      return Status::ok();
    }
    const int error = errno;
    return from_errno(from + " -> " + to, error);
  }

  Status remove(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return error ? from_errno(path, error.value()) : Status::ok();
  }

  Status create_directory(const std::string& path) override {
    if (path.empty() || is_directory(path)) {
      return Status::ok();
    }
    const std::string parent = parent_path(path);
    if (parent != path) {
      INGLE_RETURN_IF_ERROR(create_directory(parent));
    }
    if (::mkdir(path.c_str(), 0700) == 0 ||
        (errno == EEXIST && is_directory(path))) {
      return Status::ok();
    }
    return from_errno(path, errno);
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    auto it = std::filesystem::directory_iterator(path, error);
    for (; !error && it != std::filesystem::directory_iterator();
         it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    if (error) {
      return from_errno(path, error.value());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<FileInfo> stat(const std::string& path) override {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) {
      return from_errno(path, errno);
    }
    return FileInfo{
        static_cast<uint64_t>(info.st_size),
        S_ISDIR(info.st_mode),
        std::chrono::seconds(info.st_mtime)};
  }

  Status sync_directory(const std::string& path) override {
    INGLE_ASSIGN_OR_RETURN(auto fd, open_fd(path, O_RDONLY | O_DIRECTORY));
    return ::fsync(fd.get()) == 0 ? Status::ok() : from_errno(path, errno);
  }

  Result<SpaceInfo> space(const std::string& path) override {
    std::error_code error;
    const auto info = std::filesystem::space(path, error);
    if (error) {
      return from_errno(path, error.value());
    }
    return SpaceInfo{info.capacity, info.available};
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    // To write: network file systems lock nothing else for one alone.
    INGLE_ASSIGN_OR_RETURN(auto fd, open_fd(path, O_RDWR | O_CREAT, 0600));
    while (::flock(fd.get(), LOCK_EX) != 0) {
      if (errno != EINTR) {
        return from_errno(path, errno);
      }
    }
    return std::unique_ptr<FileLock>(
        std::make_unique<PosixFileLock>(std::move(fd)));
  }

 private:
  static bool is_directory(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  }
};

} // namespace

std::unique_ptr<FileSystem> make_posix_file_system() {
  return std::make_unique<PosixFileSystem>();
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') {
    path += '/';
  }
  path += name;
  return path;
}

std::string parent_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) {
    return ".";
  }
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

std::string base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(
      slash == std::string_view::npos ? path : path.substr(slash + 1));
}

Status write_file(FileSystem& fs, const std::string& path, ByteView bytes) {
  INGLE_ASSIGN_OR_RETURN(auto file, fs.create(path));
  Status status = file->append(bytes);
  if (status.is_ok()) {
    status = file->sync();
  }
  if (status.is_ok()) {
    status = file->close();
  }
  if (!status.is_ok()) {
    file.reset();
    // The first failure is the one to tell; a leftover is swept by the caller.
    static_cast<void>(fs.remove(path));
  }
  return status;
}

} // namespace ingle

// All file access, so that tests can run in memory and fail any call.
//
// Paths are plain strings, UTF-8 on every platform we build for. Every error
// message names the path and the system's reason: "models/x.gguf: No such file
// or directory". Three forms: posix, memory (tests), faulty (tests; fails the
// Nth call of another).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"

namespace ingle {

// The bytes of one file, fixed at the time it was mapped.
//
// Owns:    the mapping; bytes() lives as long as this object.
// Threads: any.
// Crash:   reading a page of a file that was truncated after mapping raises
//          SIGBUS; files we map are renamed into place and never rewritten.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual ByteView bytes() const = 0;
  // A part of bytes() that is not needed soon: it may leave this process'
  // memory, and comes back when it is read. Does nothing where that can't be.
  virtual void release(ByteView part) const {
    static_cast<void>(part);
  }
};

// A file being written. Destroying it without close() abandons it: what was
// written may or may not be there.
//
// Threads: one.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Errors: kNoSpace, kIo; the file must not be used after one.
  virtual Status append(ByteView bytes) = 0;
  // Durable when it returns. Errors: kNoSpace, kIo.
  virtual Status sync() = 0;
  virtual Status close() = 0;
};

// Holds what FileSystem::lock() locked until it is destroyed.
//
// Threads: any, one at a time. Its file system outlives it.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// The largest tokenizer.json known is under 40 MB.
inline constexpr uint64_t kMaxReadBytes = uint64_t{256} << 20;

struct FileInfo {
  uint64_t size = 0; // bytes
  bool is_directory = false;
  std::chrono::seconds modified{}; // since the epoch
};

struct SpaceInfo {
  uint64_t capacity = 0; // bytes
  uint64_t available = 0; // bytes, to this user
};

// Threads: any.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Errors: kNotFound, kIo. An empty file maps to no bytes.
  virtual Result<std::shared_ptr<MappedFile>> map(const std::string& path) = 0;
  // For text that is parsed whole; what may be larger is mapped.
  // Errors: kNotFound, kIo, kCorruption (over kMaxReadBytes; nothing is
  // allocated).
  virtual Result<std::string> read(const std::string& path) = 0;
  // Creates or truncates. Mode 0600. Errors: kNotFound (no such folder),
  // kNoSpace, kIo.
  virtual Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) = 0;
  // As create(), where nothing has the name yet: of several that try at once,
  // in this process or others, one succeeds. Null: the name is taken.
  virtual Result<std::unique_ptr<WritableFile>> create_new(
      const std::string& path) = 0;
  // Goes on at the end of a file that is there. Errors: kNotFound, kIo.
  virtual Result<std::unique_ptr<WritableFile>> open_to_append(
      const std::string& path) = 0;
  // A symbolic link; a relative `target` starts at the link's folder, and need
  // not be there. Errors: kNotFound (no such folder), kNoSpace, kIo (also: the
  // name is taken).
  virtual Status create_link(
      const std::string& target,
      const std::string& path) = 0;
  // A symbolic link's target; nothing where `path` is none. Errors: kNotFound,
  // kIo.
  virtual Result<std::optional<std::string>> read_link(
      const std::string& path) = 0;
  // Atomic within one file system. Replaces a file; a folder is only replaced
  // when it is empty. Errors: kNotFound, kIo.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // A file, or a folder with all that is in it, or a link, whose target stays;
  // kOk where nothing is there.
  virtual Status remove(const std::string& path) = 0;
  // With its parents, mode 0700; kOk where it exists.
  virtual Status create_directory(const std::string& path) = 0;
  // Names (not paths) in the folder, sorted. Errors: kNotFound, kIo.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  // Of what a link leads to. Errors: kNotFound, kIo.
  virtual Result<FileInfo> stat(const std::string& path) = 0;
  // Makes renames in the folder durable. Errors: kNotFound, kIo.
  virtual Status sync_directory(const std::string& path) = 0;
  virtual Result<SpaceInfo> space(const std::string& path) = 0;
  // Waits until nobody holds a lock on the path, in this process or another,
  // and holds it. For work of milliseconds: who waits can't be interrupted, and
  // one thread that asks twice waits for ever. It binds those that ask for it;
  // read(), create() and the rest don't. The file is made, empty and with mode
  // 0600, where it isn't there; its content stays as it is, and who removes or
  // replaces it lets others in.
  // Errors: kNotFound (no such folder), kNoSpace, kIo (also: a folder, or a
  //         file system without locks).
  // Crash:  a process that ends holds no lock any more; the file stays.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;

  bool exists(const std::string& path) {
    return stat(path).is_ok();
  }
};

std::unique_ptr<FileSystem> make_posix_file_system();
// Times are those of `clock`, which outlives it; null: all at the epoch, as
// those of folders are in any case. It follows links that a path ends with, not
// those on the way.
std::unique_ptr<FileSystem> make_memory_file_system(
    const Clock* clock = nullptr);

// `folder`/`name`, without a doubled slash.
std::string join_path(std::string_view folder, std::string_view name);
// What stands before the last slash; "." where there is none, "/" at the root.
std::string parent_path(std::string_view path);
// What stands after the last slash.
std::string base_name(std::string_view path);

// Writes the whole file, syncs and closes it; removes it where that failed.
Status write_file(FileSystem& fs, const std::string& path, ByteView bytes);

} // namespace ingle

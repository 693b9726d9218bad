// Who may change a model in the cache: one process at a time.
//
// A file with the process's number and its machine's name, "1234 machine",
// which has to be new (O_EXCL) to count:
//   <cache>/.locks/models--org--name/ingle.lock
// A lock whose process is gone from this machine, or that was not kept for an
// hour (another machine's, a container's, or a number that another process has
// by now), is stolen. Only one of those that want to steal it can, as they take
// turns under the system's lock on <cache>/.locks/ingle.turn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

struct Process {
  int number = 0; // 0: not known
  std::string machine; // empty: not known

  bool operator==(const Process&) const = default;
  std::string to_string() const; // "process 12", "process 12 on machine"
};

struct Processes {
  Process self;
  std::function<bool(int number)> is_running; // on this machine
};

// Owns:    the lock file, which goes with it.
// Threads: one. What it was made with outlives it.
// Crash:   the file stays, and is stolen.
class RepoLock {
 public:
  // Never waits for a holder. Errors: kOverloaded (it is held: the message
  // says by which process), kNoSpace, kIo.
  static Result<std::unique_ptr<RepoLock>> take(
      FileSystem& fs,
      const Clock& clock,
      const Processes& processes,
      const std::string& cache,
      const std::string& repo);
  // The process that holds it; nothing: nobody. Errors: kIo.
  static Result<std::optional<Process>> holder(
      FileSystem& fs,
      const Clock& clock,
      const Processes& processes,
      const std::string& cache,
      const std::string& repo);

  ~RepoLock();
  RepoLock(const RepoLock&) = delete;
  RepoLock& operator=(const RepoLock&) = delete;

  // To be called while it works; writes the file once a minute. Errors:
  // kOverloaded (it was stolen, so the work must end), kNoSpace, kIo.
  Status keep();

 private:
  struct Places {
    std::string folder;
    std::string file;
    std::string turn;
  };

  RepoLock(FileSystem& fs, const Clock& clock, Process self, Places places);
  static Places places_of(const std::string& cache, const std::string& repo);
  static Result<std::optional<Process>> holder_of(
      FileSystem& fs,
      const Clock& clock,
      const Processes& processes,
      const std::string& file);
  Status write();
  // Reads the file: true iff it is this process's.
  bool is_ours() const;

  FileSystem& fs_;
  const Clock& clock_;
  const Process self_;
  const Places places_;
  std::chrono::steady_clock::time_point kept_;
};

} // namespace ingle

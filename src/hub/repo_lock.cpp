#include "hub/repo_lock.h"

#include <charconv>

#include "hub/names.h"

namespace ingle {
namespace {

constexpr std::chrono::hours kStale{1};
constexpr std::chrono::minutes kKeepEvery{1};

std::string content_of(const Process& process) {
  return std::to_string(process.number) + " " + process.machine + "\n";
}

// Nothing: not a process. It may be being written.
std::optional<Process> parse_process(std::string_view text) {
  if (!text.ends_with('\n')) {
    return std::nullopt;
  }
  text.remove_suffix(1);
  const std::string_view digits = text.substr(0, text.find(' '));
  Process process;
  const auto [end, error] = std::from_chars(
      digits.data(), digits.data() + digits.size(), process.number);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      process.number <= 0) {
    return std::nullopt;
  }
  if (digits.size() < text.size()) {
    process.machine = text.substr(digits.size() + 1);
  }
  return process;
}

// False where it can't be told.
bool is_gone(const Process& process, const Processes& processes) {
  // Our own name, which we have not written, is that of one before us.
  return process.machine == processes.self.machine &&
      (process == processes.self || !processes.is_running(process.number));
}

Status write_and_close(WritableFile& file, std::string_view text) {
  INGLE_RETURN_IF_ERROR(file.append(as_bytes(text)));
  return file.close();
}

} // namespace

std::string Process::to_string() const {
  if (number == 0) {
    return "another process";
  }
  return "process " + std::to_string(number) +
      (machine.empty() ? "" : " on " + machine);
}

RepoLock::RepoLock(
    FileSystem& fs,
    const Clock& clock,
    Process self,
    Places places)
    : fs_(fs),
      clock_(clock),
      self_(std::move(self)),
      places_(std::move(places)),
      kept_(clock.now()) {}

RepoLock::Places RepoLock::places_of(
    const std::string& cache,
    const std::string& repo) {
  const std::string locks = join_path(cache, ".locks");
  const std::string folder = join_path(locks, repo_folder_name(repo));
  return {
      folder, join_path(folder, "ingle.lock"), join_path(locks, "ingle.turn")};
}

Result<std::optional<Process>> RepoLock::holder_of(
    FileSystem& fs,
    const Clock& clock,
    const Processes& processes,
    const std::string& file) {
  const auto text = fs.read(file);
  const auto info = fs.stat(file);
  for (const Status& status : {text.status(), info.status()}) {
    if (status.code() == StatusCode::kNotFound) {
      return std::optional<Process>();
    }
    INGLE_RETURN_IF_ERROR(status);
  }
  const bool is_stale = clock.since_epoch() - info->modified > kStale;
  const auto process = parse_process(*text);
  return is_stale || (process && is_gone(*process, processes))
      ? std::optional<Process>()
      : std::optional(process.value_or(Process()));
}

Result<std::optional<Process>> RepoLock::holder(
    FileSystem& fs,
    const Clock& clock,
    const Processes& processes,
    const std::string& cache,
    const std::string& repo) {
  return holder_of(fs, clock, processes, places_of(cache, repo).file);
}

Result<std::unique_ptr<RepoLock>> RepoLock::take(
    FileSystem& fs,
    const Clock& clock,
    const Processes& processes,
    const std::string& cache,
    const std::string& repo) {
  Places places = places_of(cache, repo);
  INGLE_RETURN_IF_ERROR(fs.create_directory(places.folder));
  INGLE_ASSIGN_OR_RETURN(const auto turn, fs.lock(places.turn));
  INGLE_ASSIGN_OR_RETURN(
      const auto holder, holder_of(fs, clock, processes, places.file));
  if (!holder) {
    INGLE_RETURN_IF_ERROR(fs.remove(places.file));
  }
  INGLE_ASSIGN_OR_RETURN(const auto file, fs.create_new(places.file));
  if (file == nullptr) {
    return Status::overloaded(
        repo + " is being changed by " +
        holder.value_or(Process()).to_string() + " (" + places.file +
        "); wait for it to end");
  }
  const Status written = write_and_close(*file, content_of(processes.self));
  if (!written.is_ok()) {
    // The first failure is the one to tell.
    static_cast<void>(fs.remove(places.file));
    return written;
  }
  return std::unique_ptr<RepoLock>(
      new RepoLock(fs, clock, processes.self, std::move(places)));
}

RepoLock::~RepoLock() {
  const auto turn = fs_.lock(places_.turn);
  if (turn.is_ok() && is_ours()) {
    // A lock that stays is stolen, as this process will be gone.
    static_cast<void>(fs_.remove(places_.file));
  }
}

Status RepoLock::keep() {
  if (clock_.now() - kept_ < kKeepEvery) {
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(const auto turn, fs_.lock(places_.turn));
  if (!is_ours()) {
    return Status::overloaded(
        places_.file +
        ": another process has taken over; run it again when "
        "that one has ended");
  }
  INGLE_RETURN_IF_ERROR(write());
  kept_ = clock_.now();
  return Status::ok();
}

Status RepoLock::write() {
  INGLE_ASSIGN_OR_RETURN(const auto file, fs_.create(places_.file));
  return write_and_close(*file, content_of(self_));
}

bool RepoLock::is_ours() const {
  const auto text = fs_.read(places_.file);
  return text.is_ok() && parse_process(*text) == self_;
}

} // namespace ingle

#include "hub/garbage.h"

#include <algorithm>
#include <set>

#include "hub/content_hash.h"
#include "hub/hub_cache.h"
#include "hub/model_files.h"
#include "hub/names.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

constexpr std::chrono::hours kQuiet{1};
constexpr std::string_view kForeignPart = ".incomplete"; // of other programs

// One repo's garbage.
class RepoSearch {
 public:
  RepoSearch(const DownloadPlace& place, const CachedRepo& repo)
      : place_(place), repo_(repo) {}

  Result<std::vector<Garbage>> run() {
    INGLE_RETURN_IF_ERROR(judge_snapshots());
    INGLE_RETURN_IF_ERROR(judge_blobs());
    return std::move(found_);
  }

 private:
  // True iff it has not changed for a while.
  Result<bool> is_quiet(const std::string& path) const {
    INGLE_ASSIGN_OR_RETURN(const FileInfo info, place_.fs.stat(path));
    return place_.clock.since_epoch() - info.modified > kQuiet;
  }

  bool is_named(const std::string& commit) const {
    return std::ranges::any_of(
        repo_.refs, [&](const auto& ref) { return ref.second == commit; });
  }

  // True iff a model could be loaded from it.
  bool is_whole(const std::string& commit) const {
    const std::string folder = repo_.snapshot_folder(commit);
    return place_.fs.exists(join_path(folder, kConfigFile)) &&
        WeightFolder::open(place_.fs, folder).is_ok();
  }

  Status judge_snapshots() {
    const bool are_refs_whole = !repo_.refs.empty() &&
        std::ranges::all_of(
            repo_.refs, [&](const auto& ref) { return is_whole(ref.second); });
    for (const std::string& commit : repo_.snapshots) {
      const std::string folder = repo_.snapshot_folder(commit);
      INGLE_ASSIGN_OR_RETURN(
          const auto files, list_snapshot(place_.fs, folder));
      INGLE_ASSIGN_OR_RETURN(const bool quiet, is_quiet(folder));
      if (are_refs_whole && quiet && !is_named(commit) && is_ours(files)) {
        found_.push_back({GarbageKind::kSnapshot, repo_.name, folder, 0});
        continue;
      }
      for (const SnapshotFile& file : files) {
        used_.insert(file.blob);
        INGLE_RETURN_IF_ERROR(look_where_it_leads(folder, file));
      }
    }
    return Status::ok();
  }

  // True iff all are links to blobs: nobody has put a file of his own there.
  static bool is_ours(const std::vector<SnapshotFile>& files) {
    return std::ranges::none_of(
        files, [](const SnapshotFile& file) { return file.blob.empty(); });
  }

  // A link that leads to none of the blobs by its text may still do so by links
  // on the way: then none of them is known to be unused.
  Status look_where_it_leads(
      const std::string& folder,
      const SnapshotFile& file) {
    if (file.blob.empty()) {
      INGLE_ASSIGN_OR_RETURN(
          const auto target, place_.fs.read_link(join_path(folder, file.path)));
      leads_elsewhere_ |= target.has_value();
    }
    return Status::ok();
  }

  Status judge_blobs() {
    const std::string folder = repo_.blobs_folder();
    if (!place_.fs.exists(folder)) {
      return Status::ok();
    }
    INGLE_ASSIGN_OR_RETURN(const auto names, place_.fs.list(folder));
    for (const std::string& name : names) {
      const std::string path = join_path(folder, name);
      // A link leads to what repos share: their own program counts its uses.
      INGLE_ASSIGN_OR_RETURN(const auto target, place_.fs.read_link(path));
      const auto kind = target ? std::nullopt : kind_of(name);
      if (!kind) {
        continue;
      }
      INGLE_ASSIGN_OR_RETURN(const FileInfo info, place_.fs.stat(path));
      INGLE_ASSIGN_OR_RETURN(const bool quiet, is_quiet(path));
      if (quiet || name.ends_with(kPartSuffix)) {
        found_.push_back({*kind, repo_.name, path, info.size});
      }
    }
    return Status::ok();
  }

  // Of a file in blobs/. Nothing: it is in use, or not known here.
  std::optional<GarbageKind> kind_of(const std::string& name) const {
    if (name.ends_with(kPartSuffix) || name.ends_with(kForeignPart)) {
      return GarbageKind::kPart;
    }
    const bool is_blob = ContentHash::of_etag(name, 0).has_value();
    return is_blob && used_.count(name) == 0 && !leads_elsewhere_
        ? std::optional(GarbageKind::kBlob)
        : std::nullopt;
  }

  const DownloadPlace& place_;
  const CachedRepo& repo_;
  std::set<std::string> used_; // blobs
  bool leads_elsewhere_ = false;
  std::vector<Garbage> found_;
};

// Bytes that are free once the folder, or the link to one, is gone.
Result<uint64_t> bytes_in(FileSystem& fs, const std::string& folder) {
  INGLE_ASSIGN_OR_RETURN(const auto elsewhere, fs.read_link(folder));
  std::vector<std::string> paths;
  if (!elsewhere) {
    INGLE_ASSIGN_OR_RETURN(paths, files_below(fs, folder));
  }
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    const std::string full = join_path(folder, path);
    INGLE_ASSIGN_OR_RETURN(const auto target, fs.read_link(full));
    if (!target) {
      INGLE_ASSIGN_OR_RETURN(const FileInfo info, fs.stat(full));
      bytes += info.size;
    }
  }
  return bytes;
}

Status held(const std::string& repo, const Process& holder) {
  return Status::overloaded(
      repo + " is being changed by " + holder.to_string());
}

Result<std::vector<Garbage>> find_in(
    const DownloadPlace& place,
    const std::string& name) {
  INGLE_ASSIGN_OR_RETURN(
      const CachedRepo repo, read_repo(place.fs, place.cache, name));
  INGLE_ASSIGN_OR_RETURN(
      const auto holder,
      RepoLock::holder(
          place.fs, place.clock, place.processes, place.cache, name));
  if (holder && *holder != place.processes.self) {
    return held(name, *holder);
  }
  return RepoSearch(place, repo).run();
}

Result<std::vector<Garbage>> remove_in(
    const DownloadPlace& place,
    const std::string& name) {
  INGLE_ASSIGN_OR_RETURN(
      const auto lock,
      RepoLock::take(
          place.fs, place.clock, place.processes, place.cache, name));
  INGLE_ASSIGN_OR_RETURN(
      const CachedRepo repo, read_repo(place.fs, place.cache, name));
  INGLE_ASSIGN_OR_RETURN(auto found, RepoSearch(place, repo).run());
  for (const Garbage& garbage : found) { // snapshots stand first
    INGLE_RETURN_IF_ERROR(place.fs.remove(garbage.path));
  }
  return found;
}

// Asks `each` of every repo that may have some.
template <typename Each>
Result<GarbageReport> of_all_repos(const DownloadPlace& place, Each each) {
  INGLE_ASSIGN_OR_RETURN(
      const auto names, list_repo_names(place.fs, place.cache));
  GarbageReport report;
  for (const std::string& name : names) {
    auto found = each(place, name);
    if (!found.is_ok()) {
      report.left.push_back(found.status());
      continue;
    }
    report.found.insert(report.found.end(), found->begin(), found->end());
  }
  return report;
}

} // namespace

std::string_view to_string(GarbageKind kind) {
  switch (kind) {
    case GarbageKind::kPart:
      return "part of a download";
    case GarbageKind::kSnapshot:
      return "superseded snapshot";
    case GarbageKind::kBlob:
      return "unused blob";
  }
  return "unused blob";
}

uint64_t GarbageReport::bytes() const {
  uint64_t sum = 0;
  for (const Garbage& garbage : found) {
    sum += garbage.bytes;
  }
  return sum;
}

Result<GarbageReport> find_garbage(const DownloadPlace& place) {
  return of_all_repos(place, find_in);
}

Result<GarbageReport> remove_garbage(const DownloadPlace& place) {
  return of_all_repos(place, remove_in);
}

Result<uint64_t> remove_repo(
    const DownloadPlace& place,
    const std::string& repo) {
  INGLE_ASSIGN_OR_RETURN(
      const auto lock,
      RepoLock::take(
          place.fs, place.clock, place.processes, place.cache, repo));
  const std::string folder = join_path(place.cache, repo_folder_name(repo));
  INGLE_ASSIGN_OR_RETURN(const uint64_t bytes, bytes_in(place.fs, folder));
  INGLE_ASSIGN_OR_RETURN(const auto elsewhere, place.fs.read_link(folder));
  if (!elsewhere) {
    INGLE_RETURN_IF_ERROR(place.fs.remove(join_path(folder, "snapshots")));
  }
  INGLE_RETURN_IF_ERROR(place.fs.remove(folder));
  return bytes;
}

Result<uint64_t> remove_folder(FileSystem& fs, const std::string& folder) {
  INGLE_ASSIGN_OR_RETURN(const uint64_t bytes, bytes_in(fs, folder));
  INGLE_RETURN_IF_ERROR(fs.remove(folder));
  return bytes;
}

} // namespace ingle

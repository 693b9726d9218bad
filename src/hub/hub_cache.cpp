#include "hub/hub_cache.h"

#include <algorithm>
#include <filesystem>

#include "hub/names.h"

namespace ingle {
namespace {

constexpr int kMaxDepth = 8; // of folders in folders

// Names in the folder; none where it isn't there.
Result<std::vector<std::string>> list_if_there(
    FileSystem& fs,
    const std::string& folder) {
  auto names = fs.list(folder);
  if (!names.is_ok() && names.status().code() == StatusCode::kNotFound) {
    return std::vector<std::string>();
  }
  return names;
}

// What is a folder itself, not a link to one.
Result<bool> is_own_folder(FileSystem& fs, const std::string& path) {
  INGLE_ASSIGN_OR_RETURN(const auto target, fs.read_link(path));
  if (target) {
    return false;
  }
  INGLE_ASSIGN_OR_RETURN(const FileInfo info, fs.stat(path));
  return info.is_directory;
}

// Paths, below `root`, of all that is no folder.
Status collect_files(
    FileSystem& fs,
    const std::string& root,
    const std::string& below,
    int depth,
    std::vector<std::string>& paths) {
  if (depth > kMaxDepth) {
    return Status::io(join_path(root, below) + ": too many folders in folders");
  }
  INGLE_ASSIGN_OR_RETURN(
      const auto names, fs.list(below.empty() ? root : join_path(root, below)));
  for (const std::string& name : names) {
    const std::string path = below.empty() ? name : join_path(below, name);
    INGLE_ASSIGN_OR_RETURN(
        const bool is_folder, is_own_folder(fs, join_path(root, path)));
    if (is_folder) {
      INGLE_RETURN_IF_ERROR(collect_files(fs, root, path, depth + 1, paths));
    } else {
      paths.push_back(path);
    }
  }
  return Status::ok();
}

Status read_refs(FileSystem& fs, CachedRepo& repo) {
  const std::string folder = join_path(repo.folder, "refs");
  if (!fs.exists(folder)) {
    return Status::ok();
  }
  INGLE_ASSIGN_OR_RETURN(const auto revisions, files_below(fs, folder));
  for (const std::string& revision : revisions) {
    INGLE_ASSIGN_OR_RETURN(
        std::string commit, fs.read(join_path(folder, revision)));
    while (commit.ends_with('\n')) {
      commit.pop_back();
    }
    if (is_commit(commit)) {
      repo.refs[revision] = commit;
    }
  }
  return Status::ok();
}

// The blob that a link in a snapshot stands for; empty: none of this repo.
std::string blob_of(
    const std::string& link,
    const std::string& target,
    const std::string& blobs) {
  const std::filesystem::path path =
      (std::filesystem::path(parent_path(link)) / target).lexically_normal();
  return path.parent_path() == std::filesystem::path(blobs).lexically_normal()
      ? path.filename().string()
      : std::string();
}

} // namespace

std::optional<std::string> CachedRepo::canonical_snapshot() const {
  if (const auto main = refs.find(kDefaultRevision); main != refs.end()) {
    return has_snapshot(main->second) ? std::optional(main->second)
                                      : std::nullopt;
  }
  return snapshots.size() == 1 ? std::optional(snapshots.front())
                               : std::nullopt;
}

std::optional<std::string> CachedRepo::snapshot_of(
    std::string_view revision) const {
  const auto ref = refs.find(revision);
  const std::string commit(ref == refs.end() ? revision : ref->second);
  return has_snapshot(commit) ? std::optional(commit) : std::nullopt;
}

std::string CachedRepo::blobs_folder() const {
  return join_path(folder, "blobs");
}

std::string CachedRepo::snapshot_folder(std::string_view commit) const {
  return join_path(join_path(folder, "snapshots"), commit);
}

bool CachedRepo::has_snapshot(std::string_view commit) const {
  return std::ranges::binary_search(snapshots, commit);
}

Result<CachedRepo>
read_repo(FileSystem& fs, const std::string& cache, const std::string& name) {
  CachedRepo repo;
  repo.name = name;
  repo.folder = join_path(cache, repo_folder_name(name));
  INGLE_ASSIGN_OR_RETURN(
      repo.snapshots, list_if_there(fs, join_path(repo.folder, "snapshots")));
  std::erase_if(repo.snapshots, [](const std::string& commit) {
    return !is_commit(commit);
  });
  INGLE_RETURN_IF_ERROR(read_refs(fs, repo));
  return repo;
}

Result<std::vector<std::string>> list_repo_names(
    FileSystem& fs,
    const std::string& cache) {
  INGLE_ASSIGN_OR_RETURN(const auto folders, list_if_there(fs, cache));
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    if (auto name = repo_of_folder_name(folder)) {
      names.push_back(*std::move(name));
    }
  }
  std::ranges::sort(names);
  return names;
}

Result<std::vector<std::string>> files_below(
    FileSystem& fs,
    const std::string& folder) {
  std::vector<std::string> paths;
  INGLE_RETURN_IF_ERROR(collect_files(fs, folder, "", 0, paths));
  return paths;
}

Result<std::vector<SnapshotFile>> list_snapshot(
    FileSystem& fs,
    const std::string& folder) {
  INGLE_ASSIGN_OR_RETURN(const auto paths, files_below(fs, folder));
  const std::string blobs =
      join_path(parent_path(parent_path(folder)), "blobs");
  std::vector<SnapshotFile> files;
  for (const std::string& path : paths) {
    const std::string full = join_path(folder, path);
    INGLE_ASSIGN_OR_RETURN(const auto target, fs.read_link(full));
    files.push_back({path, target ? blob_of(full, *target, blobs) : ""});
  }
  return files;
}

} // namespace ingle

// The cache folder, as it stands on disk: which models, which revisions.
//
//   <cache>/models--org--name/blobs/<etag>       what files hold
//                            /snapshots/<commit>/<path>   links to blobs
//                            /refs/<revision>    the commit, as text
//   <cache>/.locks/models--org--name/            see repo_lock.h
//
// Other programs write it too, so nothing of it is believed unchecked: a ref
// that holds no commit is none, links are read, not followed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

// Of a blob that is not whole yet. Not what the hub's own libraries add: they
// don't ask for our lock, so each writes to a file of its own.
inline constexpr std::string_view kPartSuffix = ".ingle-part";

struct CachedRepo {
  std::string name; // "org/name"
  std::string folder;
  std::map<std::string, std::string, std::less<>> refs; // revision -> commit
  std::vector<std::string> snapshots; // commits, sorted

  // The one row that the repo is listed with: the snapshot that refs/main
  // names, or the only one. Nothing: there is none, or several without a main.
  std::optional<std::string> canonical_snapshot() const;
  // That of a branch, a tag or a commit. Nothing: it isn't there.
  std::optional<std::string> snapshot_of(std::string_view revision) const;

  std::string blobs_folder() const;
  std::string snapshot_folder(std::string_view commit) const;
  bool has_snapshot(std::string_view commit) const;
};

// The names of all models of the cache, sorted; none where there is no such
// folder. Errors: kIo.
Result<std::vector<std::string>> list_repo_names(
    FileSystem& fs,
    const std::string& cache);

// One of them; its folder need not be there. Errors: kIo.
Result<CachedRepo>
read_repo(FileSystem& fs, const std::string& cache, const std::string& name);

// The paths, below the folder, of all files and links in it and in its folders.
// Errors: kNotFound, kIo (also: folders in folders without an end).
Result<std::vector<std::string>> files_below(
    FileSystem& fs,
    const std::string& folder);

// What a snapshot holds.
struct SnapshotFile {
  std::string path; // below the snapshot's folder
  std::string blob; // the name of the blob; empty: it is no link to one
};

// Errors: as files_below().
Result<std::vector<SnapshotFile>> list_snapshot(
    FileSystem& fs,
    const std::string& folder);

} // namespace ingle

// What the cache holds that no model needs.
//
// Garbage is
//   - a download that did not end, while nobody holds the model's lock;
//   - a snapshot that no ref names, where what refs name is whole;
//   - a blob that no other snapshot refers to.
// Other programs write the cache without our lock, so nothing of theirs that
// changed in the last hour is touched, nor what is of no kind that is known
// here, nor a model that can't be read to its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/download.h"

namespace ingle {

enum class GarbageKind { kPart, kSnapshot, kBlob };

// "part of a download", "superseded snapshot", "unused blob".
std::string_view to_string(GarbageKind kind);

struct Garbage {
  GarbageKind kind = GarbageKind::kBlob;
  std::string repo; // "org/name"
  std::string path;
  uint64_t bytes = 0; // that are free once it is gone
};

struct GarbageReport {
  std::vector<Garbage> found; // by repo; removed where that was asked for
  std::vector<Status> left; // a model that was passed over, and why

  uint64_t bytes() const;
};

// Looks, and removes nothing. Errors: kIo (the cache itself can't be read).
Result<GarbageReport> find_garbage(const DownloadPlace& place);

// Looks, holding each model's lock, and removes. Errors: kIo. A model where it
// fails is in `left`.
// Crash: what is there is as good as before; snapshots go before their blobs.
Result<GarbageReport> remove_garbage(const DownloadPlace& place);

// Removes all that the cache holds of a model, holding its lock. Returns the
// bytes that are free then. Errors: those of RepoLock::take(), kIo.
// Where its folder is a link, that goes and its target stays.
// Crash: snapshots go first, so that nothing of it can be run any more; remove
// it again.
Result<uint64_t> remove_repo(
    const DownloadPlace& place,
    const std::string& repo);

// A folder and what it holds; links' targets stay. Returns the bytes that are
// free then. Errors: kNotFound, kIo.
Result<uint64_t> remove_folder(FileSystem& fs, const std::string& folder);

} // namespace ingle

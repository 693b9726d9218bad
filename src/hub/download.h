// A model from a hub -> a snapshot in the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "hub/hub.h"
#include "hub/repo_lock.h"

namespace ingle {

// What is done, and what there is in all.
using DownloadProgress = std::function<void(uint64_t done, uint64_t total)>;

struct DownloadPlan {
  HubModel model;
  std::string commit;
  std::vector<HubFile> files; // with different paths

  uint64_t bytes() const;
};

// What there is to fetch: of the files that the hub lists those that a model
// needs. They are config.json, model.safetensors or the shards that its index
// names, and what there is of the tokenizer's files, the chat template,
// generation_config.json and kv_config.json.
// Errors: those of Hub; kUnsupported (no config.json, no safetensors),
//         kCorruption (an index that makes no sense, a shard that the hub does
//         not list, or whose name leads out of its folder).
// `progress`, which may be empty, is told of the files that were asked for.
Result<DownloadPlan> plan_download(
    Hub& hub,
    const HubModel& model,
    const DownloadProgress& progress = {});

struct DownloadReport {
  std::string folder; // of the snapshot
  uint64_t fetched_bytes = 0; // 0: all was there
};

// Where and as whom.
struct DownloadPlace {
  FileSystem& fs;
  const Clock& clock;
  const Processes& processes;
  std::string cache; // the cache's folder; need not be there
};

// Fetches what isn't there yet, checks it against its hash, and makes the
// snapshot; refs/<revision> names it last. A blob that came in part is hashed
// again and gone on with.
//
// Threads: calls `progress`, which may be empty, on the calling thread, with
//          the bytes that are there.
// Errors:  those of Hub and RepoLock::take(); kNoSpace (also: before anything
//          is fetched), kIo, kCorruption (a hash that differs: what came of the
//          file is removed). All else that came before an error is kept, and
//          the message says how much that is.
// Crash:   a blob is absent or whole, a ref names what is whole; the rest is
//          kept for the next download.
Result<DownloadReport> download(
    const DownloadPlace& place,
    Hub& hub,
    const DownloadPlan& plan,
    const DownloadProgress& progress = {});

} // namespace ingle

#include "hub/download.h"

#include <algorithm>
#include <optional>
#include <set>

#include "hub/blob_download.h"
#include "hub/hub_cache.h"
#include "hub/model_files.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

// Names of what a repo has instead of safetensors; empty: nothing known.
std::string other_weights(const std::set<std::string>& listed) {
  for (const std::string_view suffix : {".gguf", ".bin", ".pt", ".pth"}) {
    const bool has_some = std::ranges::any_of(
        listed,
        [&](const std::string& name) { return name.ends_with(suffix); });
    if (has_some) {
      return std::string(suffix);
    }
  }
  return {};
}

Status no_weights(const HubModel& model, const std::set<std::string>& listed) {
  const std::string other = other_weights(listed);
  return Status::unsupported(
      model.to_string() + ": has no safetensors weights" +
      (other == ".gguf" ? "; download one of its .gguf files and run ingle "
                          "import"
           : other.empty()
           ? ", so it is no model"
           : ", only " + other + " files; look for a conversion of it"));
}

// The weights' files: one, or an index and its shards.
Result<std::vector<std::string>> plan_weights(
    Hub& hub,
    const HubModel& model,
    const HubListing& listing,
    const std::set<std::string>& listed) {
  if (listed.count(std::string(kWeightsFile)) != 0) {
    return std::vector<std::string>{std::string(kWeightsFile)};
  }
  std::vector<std::string> files = {std::string(kWeightsIndex)};
  if (listed.count(files.front()) == 0) {
    return no_weights(model, listed);
  }
  INGLE_ASSIGN_OR_RETURN(
      const HubFile index, hub.describe(model, listing.commit, files.front()));
  INGLE_ASSIGN_OR_RETURN(
      const std::string json, hub.read(model, listing.commit, index));
  const std::string origin = model.to_string() + ": " + files.front();
  INGLE_ASSIGN_OR_RETURN(const auto shards, shards_of_index(json, origin));
  for (const std::string& shard : shards) {
    if (listed.count(shard) == 0) {
      return Status::corruption(
          origin + " names " + quote_name(shard) +
          ", which the model does not have");
    }
    files.push_back(shard);
  }
  return files;
}

// One download, while its lock is held.
class Download {
 public:
  Download(
      const DownloadPlace& place,
      Hub& hub,
      const DownloadPlan& plan,
      const DownloadProgress& progress,
      RepoLock& lock)
      : place_(place),
        hub_(hub),
        plan_(plan),
        progress_(progress),
        lock_(lock) {}

  Result<DownloadReport> run(const CachedRepo& repo) {
    INGLE_RETURN_IF_ERROR(place_.fs.create_directory(repo.blobs_folder()));
    INGLE_RETURN_IF_ERROR(check_space(repo));
    for (const HubFile& file : plan_.files) {
      INGLE_RETURN_IF_ERROR(fetch(repo, file));
      done_ += file.size;
    }
    INGLE_RETURN_IF_ERROR(place_.fs.sync_directory(repo.blobs_folder()));
    const std::string folder = repo.snapshot_folder(plan_.commit);
    for (const HubFile& file : plan_.files) {
      INGLE_RETURN_IF_ERROR(link(folder, file));
    }
    INGLE_RETURN_IF_ERROR(place_.fs.sync_directory(folder));
    INGLE_RETURN_IF_ERROR(write_ref(repo));
    return DownloadReport{folder, fetched_};
  }

  // The failure, and what is kept in spite of it.
  Status with_kept_bytes(Status failure) const {
    const bool is_removed = failure.code() == StatusCode::kCorruption;
    if (there_ == 0 || is_removed) {
      return failure;
    }
    return {
        failure.code(),
        failure.message() + "; " + std::to_string(there_) + " of " +
            std::to_string(plan_.bytes()) +
            " bytes are kept, the same command goes on from there"};
  }

 private:
  Status check_space(const CachedRepo& repo) {
    uint64_t needed = 0;
    for (const HubFile& file : plan_.files) {
      needed += missing_bytes(place_.fs, repo.blobs_folder(), file);
    }
    INGLE_ASSIGN_OR_RETURN(
        const SpaceInfo space, place_.fs.space(repo.blobs_folder()));
    if (needed <= space.available) {
      return Status::ok();
    }
    const auto megabytes = [](uint64_t bytes) {
      return std::to_string(bytes / 1'000'000) + " MB";
    };
    return Status::no_space(
        place_.cache + ": " + plan_.model.to_string() + " needs " +
        megabytes(needed) + " more, but only " + megabytes(space.available) +
        " are free");
  }

  Status fetch(const CachedRepo& repo, const HubFile& file) {
    BlobDownload blob(
        place_.fs, repo.blobs_folder(), file, [&](uint64_t there) {
          there_ = done_ + there;
          if (progress_) {
            progress_(there_, plan_.bytes());
          }
          return lock_.keep();
        });
    const Status status = blob.run([&](const Hub::Body& body) {
      return hub_.fetch(
          plan_.model,
          plan_.commit,
          file,
          [&] { return blob.bytes_there(); },
          body);
    });
    fetched_ += blob.bytes_fetched();
    return status;
  }

  Status link(const std::string& folder, const HubFile& file) {
    const std::string path = join_path(folder, file.path);
    std::string target = "../../blobs/" + file.etag;
    for (const char c : file.path) {
      if (c == '/') {
        target.insert(0, "../");
      }
    }
    INGLE_RETURN_IF_ERROR(place_.fs.create_directory(parent_path(path)));
    const auto old = place_.fs.read_link(path);
    if (old.is_ok() && *old == target) {
      return Status::ok();
    }
    INGLE_RETURN_IF_ERROR(place_.fs.remove(path));
    return place_.fs.create_link(target, path);
  }

  Status write_ref(const CachedRepo& repo) {
    // A commit that was asked for by its name gets a ref, too: what no ref
    // names is garbage.
    const std::string path =
        join_path(join_path(repo.folder, "refs"), plan_.model.revision);
    const std::string fresh = join_path(repo.folder, ".ingle-ref");
    INGLE_RETURN_IF_ERROR(place_.fs.create_directory(parent_path(path)));
    INGLE_RETURN_IF_ERROR(write_file(place_.fs, fresh, as_bytes(plan_.commit)));
    INGLE_RETURN_IF_ERROR(place_.fs.rename(fresh, path));
    return place_.fs.sync_directory(parent_path(path));
  }

  const DownloadPlace& place_;
  Hub& hub_;
  const DownloadPlan& plan_;
  const DownloadProgress& progress_;
  RepoLock& lock_;
  uint64_t done_ = 0; // bytes of the files before this one
  uint64_t there_ = 0; // bytes of these and of this one
  uint64_t fetched_ = 0; // bytes
};

} // namespace

uint64_t DownloadPlan::bytes() const {
  uint64_t sum = 0;
  for (const HubFile& file : files) {
    sum += file.size;
  }
  return sum;
}

Result<DownloadPlan> plan_download(
    Hub& hub,
    const HubModel& model,
    const DownloadProgress& progress) {
  INGLE_ASSIGN_OR_RETURN(const HubListing listing, hub.list(model));
  const std::set<std::string> listed(
      listing.files.begin(), listing.files.end());
  if (listed.count(std::string(kConfigFile)) == 0) {
    return Status::unsupported(
        model.to_string() + ": has no config.json, so it is no model" +
        (other_weights(listed) == ".gguf"
             ? "; download one of its .gguf files and run ingle import"
             : ""));
  }
  std::vector<std::string> paths = text_files_of(listed);
  INGLE_ASSIGN_OR_RETURN(
      const auto weights, plan_weights(hub, model, listing, listed));
  paths.insert(paths.end(), weights.begin(), weights.end());
  DownloadPlan plan{model, listing.commit, {}};
  for (const std::string& path : paths) {
    INGLE_ASSIGN_OR_RETURN(
        HubFile file, hub.describe(model, listing.commit, path));
    plan.files.push_back(std::move(file));
    if (progress) {
      progress(plan.files.size(), paths.size());
    }
  }
  return plan;
}

Result<DownloadReport> download(
    const DownloadPlace& place,
    Hub& hub,
    const DownloadPlan& plan,
    const DownloadProgress& progress) {
  INGLE_ASSIGN_OR_RETURN(
      const auto lock,
      RepoLock::take(
          place.fs,
          place.clock,
          place.processes,
          place.cache,
          plan.model.repo));
  INGLE_ASSIGN_OR_RETURN(
      const CachedRepo repo, read_repo(place.fs, place.cache, plan.model.repo));
  Download work(place, hub, plan, progress, *lock);
  auto report = work.run(repo);
  if (!report.is_ok()) {
    return work.with_kept_bytes(std::move(report).status());
  }
  return report;
}

} // namespace ingle

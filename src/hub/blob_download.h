// One file's bytes -> one blob.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "hub/content_hash.h"
#include "hub/hub.h"

namespace ingle {

// Bytes that a download still has to fetch; 0: the blob is there.
uint64_t
missing_bytes(FileSystem& fs, const std::string& blobs, const HubFile& file);

// Writes <blobs>/<etag>, through <blobs>/<etag>.ingle-part, which is gone on
// with where it is there. The bytes are hashed as they come, those of before
// read once.
//
// Threads: one.
// Errors:  see run(). After an error other than kCorruption the part stays.
// Crash:   the blob is absent or whole.
class BlobDownload {
 public:
  // Told of the bytes that are there; an error ends the download.
  using Step = std::function<Status(uint64_t there)>;
  // Gives `body` the bytes from bytes_there() on, or all.
  using Fetch = std::function<Status(const Hub::Body& body)>;

  // `fs` outlives it. Requires: a folder `blobs`; an etag for ContentHash.
  BlobDownload(FileSystem& fs, std::string blobs, HubFile file, Step step);

  // Errors: those of `fetch` and the step; kNoSpace, kIo; kCorruption where the
  // bytes are not what the etag says, and then the part is removed.
  Status run(const Fetch& fetch);

  uint64_t bytes_there() const {
    return there_;
  }
  uint64_t bytes_fetched() const {
    return fetched_;
  }

 private:
  Status fetch_rest(const Fetch& fetch);
  // Reads and hashes what an earlier download left.
  Status open_part();
  Status start_over();
  Status take(uint64_t offset, ByteView bytes);
  Status check_hash();
  Status publish();

  FileSystem& fs_;
  const std::string blobs_;
  const HubFile file_;
  const Step step_;
  const std::string part_; // path
  std::unique_ptr<WritableFile> open_;
  std::optional<ContentHash> hash_; // of the bytes that are there
  uint64_t there_ = 0;
  uint64_t fetched_ = 0;
};

} // namespace ingle

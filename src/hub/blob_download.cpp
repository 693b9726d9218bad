#include "hub/blob_download.h"

#include <algorithm>

#include "hub/hub_cache.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr size_t kHashPiece = size_t{16} << 20; // bytes between two steps

std::string blob_path(const std::string& blobs, const HubFile& file) {
  return join_path(blobs, file.etag);
}

std::string part_path(const std::string& blobs, const HubFile& file) {
  return blob_path(blobs, file) + std::string(kPartSuffix);
}

bool has_size(FileSystem& fs, const std::string& path, uint64_t size) {
  const auto info = fs.stat(path);
  return info.is_ok() && !info->is_directory && info->size == size;
}

} // namespace

uint64_t
missing_bytes(FileSystem& fs, const std::string& blobs, const HubFile& file) {
  if (has_size(fs, blob_path(blobs, file), file.size)) {
    return 0;
  }
  const auto part = fs.stat(part_path(blobs, file));
  return part.is_ok() && part->size <= file.size ? file.size - part->size
                                                 : file.size;
}

BlobDownload::BlobDownload(
    FileSystem& fs,
    std::string blobs,
    HubFile file,
    Step step)
    : fs_(fs),
      blobs_(std::move(blobs)),
      file_(std::move(file)),
      step_(std::move(step)),
      part_(part_path(blobs_, file_)) {}

Status BlobDownload::run(const Fetch& fetch) {
  if (has_size(fs_, blob_path(blobs_, file_), file_.size)) {
    return step_(file_.size);
  }
  const Status status = fetch_rest(fetch);
  if (status.is_ok()) {
    return publish();
  }
  if (status.code() == StatusCode::kCorruption) {
    open_.reset();
    // The first failure is the one to tell.
    static_cast<void>(fs_.remove(part_));
  }
  return status;
}

Status BlobDownload::fetch_rest(const Fetch& fetch) {
  INGLE_RETURN_IF_ERROR(open_part());
  if (there_ < file_.size) {
    INGLE_RETURN_IF_ERROR(fetch([this](uint64_t offset, ByteView bytes) {
      return take(offset, bytes);
    }));
  }
  INGLE_RETURN_IF_ERROR(open_->sync());
  INGLE_RETURN_IF_ERROR(open_->close());
  return check_hash();
}

Status BlobDownload::open_part() {
  const auto info = fs_.stat(part_);
  if (info.status().code() == StatusCode::kNotFound ||
      (info.is_ok() && info->size > file_.size)) {
    return start_over();
  }
  INGLE_RETURN_IF_ERROR(info.status());
  hash_ = ContentHash::of_etag(file_.etag, file_.size);
  INGLE_ASSIGN_OR_RETURN(const auto mapped, fs_.map(part_));
  for (ByteView rest = mapped->bytes(); !rest.empty();) {
    const ByteView piece = rest.first(std::min(rest.size(), kHashPiece));
    hash_->update(piece);
    mapped->release(piece);
    there_ += piece.size();
    rest = rest.subspan(piece.size());
    INGLE_RETURN_IF_ERROR(step_(there_));
  }
  INGLE_ASSIGN_OR_RETURN(open_, fs_.open_to_append(part_));
  return Status::ok();
}

Status BlobDownload::start_over() {
  there_ = 0;
  hash_ = ContentHash::of_etag(file_.etag, file_.size);
  INGLE_ASSIGN_OR_RETURN(open_, fs_.create(part_));
  return Status::ok();
}

Status BlobDownload::take(uint64_t offset, ByteView bytes) {
  if (offset != there_) {
    INGLE_RETURN_IF_ERROR(start_over()); // the server gave all, not the rest
  }
  if (offset != there_ || bytes.size() > file_.size - there_) {
    return Status::corruption(
        quote_name(file_.path) + ": more came than the " +
        std::to_string(file_.size) + " bytes that it has");
  }
  INGLE_RETURN_IF_ERROR(open_->append(bytes));
  hash_->update(bytes);
  there_ += bytes.size();
  fetched_ += bytes.size();
  return step_(there_);
}

Status BlobDownload::check_hash() {
  const std::string hash = hash_->finish();
  if (hash == file_.etag) {
    return Status::ok();
  }
  return Status::corruption(
      quote_name(file_.path) + ": what came has the hash " + hash + ", not " +
      file_.etag + "; it was removed, run it again");
}

Status BlobDownload::publish() {
  return fs_.rename(part_, blob_path(blobs_, file_));
}

} // namespace ingle

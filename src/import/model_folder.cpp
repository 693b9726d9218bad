#include "import/model_folder.h"

#include <array>
#include <cstdio>
#include <random>

namespace ingle {
namespace {

// Beside the model folder: ".<name>.importing-<8 hexadecimal digits>".
constexpr size_t kSuffixDigits = 8;

std::string temporary_prefix(const std::string& folder) {
  return "." + base_name(folder) + ".importing-";
}

std::string temporary_folder(const std::string& folder) {
  std::array<char, kSuffixDigits + 1> suffix;
  std::snprintf(suffix.data(), suffix.size(), "%08x", std::random_device{}());
  return join_path(
      parent_path(folder), temporary_prefix(folder) + suffix.data());
}

// True iff an import to `folder` that crashed left `name` beside it.
bool is_leftover(const std::string& name, const std::string& folder) {
  const std::string prefix = temporary_prefix(folder);
  return name.size() == prefix.size() + kSuffixDigits &&
      name.starts_with(prefix) &&
      name.find_first_not_of("0123456789abcdef", prefix.size()) ==
      std::string::npos;
}

Status remove_leftovers(FileSystem& fs, const std::string& folder) {
  const std::string parent = parent_path(folder);
  INGLE_ASSIGN_OR_RETURN(const auto names, fs.list(parent));
  for (const std::string& name : names) {
    if (is_leftover(name, folder)) {
      INGLE_RETURN_IF_ERROR(fs.remove(join_path(parent, name)));
    }
  }
  return Status::ok();
}

Status check_space(FileSystem& fs, const std::string& parent, uint64_t needed) {
  INGLE_ASSIGN_OR_RETURN(const auto space, fs.space(parent));
  if (space.available >= needed) {
    return Status::ok();
  }
  const auto kilobytes = [](uint64_t bytes) {
    return std::to_string(bytes / 1000) + " kB";
  };
  return Status::no_space(
      parent + ": the model needs " + kilobytes(needed) + ", but only " +
      kilobytes(space.available) + " are free");
}

Status fill(
    FileSystem& fs,
    const std::string& temporary,
    const std::vector<TextFile>& files,
    const std::function<Status(const std::string& path)>& write_weights) {
  INGLE_RETURN_IF_ERROR(fs.create_directory(temporary));
  for (const TextFile& file : files) {
    INGLE_RETURN_IF_ERROR(write_file(
        fs, join_path(temporary, file.name), as_bytes(file.content)));
  }
  INGLE_RETURN_IF_ERROR(
      write_weights(join_path(temporary, "model.safetensors")));
  return fs.sync_directory(temporary);
}

Status publish(
    FileSystem& fs,
    const std::string& temporary,
    const std::string& folder) {
  INGLE_RETURN_IF_ERROR(fs.rename(temporary, folder));
  Status status = fs.sync_directory(parent_path(folder));
  if (!status.is_ok()) {
    // Whole, but a crash could undo it: an error leaves nothing.
    static_cast<void>(fs.remove(folder));
  }
  return status;
}

} // namespace

Result<std::string> new_model_folder(FileSystem& fs, std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') {
    folder.pop_back();
  }
  const std::string name = base_name(folder);
  if (name.empty() || name == "." || name == "..") {
    return Status::invalid_request(
        "'" + folder + "' does not name a new folder; choose another place");
  }
  const auto info = fs.stat(folder);
  if (info.status().code() == StatusCode::kNotFound) {
    return folder;
  }
  INGLE_RETURN_IF_ERROR(info.status());
  bool is_free = info->is_directory;
  if (is_free) {
    INGLE_ASSIGN_OR_RETURN(const auto names, fs.list(folder));
    is_free = names.empty();
  }
  if (!is_free) {
    return Status::invalid_request(
        folder +
        ": already exists and is not an empty folder; remove it or choose "
        "another place");
  }
  return folder;
}

Status write_model_folder(
    FileSystem& fs,
    const std::string& folder,
    const std::vector<TextFile>& files,
    uint64_t weight_bytes,
    const std::function<Status(const std::string& path)>& write_weights) {
  const std::string parent = parent_path(folder);
  INGLE_RETURN_IF_ERROR(fs.create_directory(parent));
  INGLE_RETURN_IF_ERROR(remove_leftovers(fs, folder));
  uint64_t bytes = weight_bytes;
  for (const TextFile& file : files) {
    bytes += file.content.size();
  }
  INGLE_RETURN_IF_ERROR(check_space(fs, parent, bytes));
  const std::string temporary = temporary_folder(folder);
  Status status = fill(fs, temporary, files, write_weights);
  if (status.is_ok()) {
    status = publish(fs, temporary, folder);
  }
  if (!status.is_ok()) {
    // The first failure is the one to tell.
    static_cast<void>(fs.remove(temporary));
    return std::move(status).with_context("cannot write " + folder);
  }
  return status;
}

} // namespace ingle

#include "base/file_system_faulty.h"

namespace ingle {
namespace {

class FaultyWritableFile final : public WritableFile {
 public:
  FaultyWritableFile(
      std::unique_ptr<WritableFile> inner,
      std::shared_ptr<FaultyFileSystem::State> state,
      std::string path)
      : inner_(std::move(inner)),
        state_(std::move(state)),
        path_(std::move(path)) {}

  Status append(ByteView bytes) override {
    INGLE_RETURN_IF_ERROR(state_->enter(path_));
    return inner_->append(bytes);
  }
  Status sync() override {
    INGLE_RETURN_IF_ERROR(state_->enter(path_));
    return inner_->sync();
  }
  Status close() override {
    INGLE_RETURN_IF_ERROR(state_->enter(path_));
    return inner_->close();
  }

 private:
  std::unique_ptr<WritableFile> inner_;
  std::shared_ptr<FaultyFileSystem::State> state_;
  std::string path_;
};

} // namespace

FaultyFileSystem::FaultyFileSystem(
    FileSystem& inner,
    uint64_t fail_at,
    StatusCode code,
    bool sticky)
    : inner_(inner),
      state_(std::make_shared<State>(State{0, fail_at, code, sticky})) {}

Status FaultyFileSystem::State::enter(const std::string& path) {
  ++calls;
  const bool fails =
      fail_at != 0 && (sticky ? calls >= fail_at : calls == fail_at);
  if (!fails) {
    return Status::ok();
  }
  return {code, path + ": injected failure of call " + std::to_string(calls)};
}

Result<std::shared_ptr<MappedFile>> FaultyFileSystem::map(
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.map(path);
}

Result<std::string> FaultyFileSystem::read(const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.read(path);
}

Result<std::unique_ptr<WritableFile>> FaultyFileSystem::create(
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  INGLE_ASSIGN_OR_RETURN(auto file, inner_.create(path));
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile>(std::move(file), state_, path));
}

Result<std::unique_ptr<WritableFile>> FaultyFileSystem::create_new(
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  INGLE_ASSIGN_OR_RETURN(auto file, inner_.create_new(path));
  if (file == nullptr) {
    return file;
  }
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile>(std::move(file), state_, path));
}

Result<std::unique_ptr<WritableFile>> FaultyFileSystem::open_to_append(
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  INGLE_ASSIGN_OR_RETURN(auto file, inner_.open_to_append(path));
  return std::unique_ptr<WritableFile>(
      std::make_unique<FaultyWritableFile>(std::move(file), state_, path));
}

Status FaultyFileSystem::create_link(
    const std::string& target,
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.create_link(target, path);
}

Result<std::optional<std::string>> FaultyFileSystem::read_link(
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.read_link(path);
}

Status FaultyFileSystem::rename(
    const std::string& from,
    const std::string& to) {
  INGLE_RETURN_IF_ERROR(state_->enter(from));
  return inner_.rename(from, to);
}

Status FaultyFileSystem::remove(const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.remove(path);
}

Status FaultyFileSystem::create_directory(const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.create_directory(path);
}

Result<std::vector<std::string>> FaultyFileSystem::list(
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.list(path);
}

Result<FileInfo> FaultyFileSystem::stat(const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.stat(path);
}

Status FaultyFileSystem::sync_directory(const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.sync_directory(path);
}

Result<SpaceInfo> FaultyFileSystem::space(const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.space(path);
}

Result<std::unique_ptr<FileLock>> FaultyFileSystem::lock(
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(state_->enter(path));
  return inner_.lock(path);
}

} // namespace ingle

#include "weights/safetensors_writer.h"

#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace ingle {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kHeaderAlignment = 8;

// Requires: the declarations were checked.
uint64_t bytes_of(const TensorSpec& tensor) {
  return *tensor_bytes(tensor.type, tensor.shape);
}

} // namespace

SafetensorsWriter::SafetensorsWriter(
    std::string path,
    std::vector<TensorSpec> tensors)
    : path_(std::move(path)), tensors_(std::move(tensors)) {}

Result<std::unique_ptr<SafetensorsWriter>> SafetensorsWriter::create(
    FileSystem& fs,
    const std::string& path,
    std::vector<TensorSpec> tensors) {
  std::unique_ptr<SafetensorsWriter> writer(
      new SafetensorsWriter(path, std::move(tensors)));
  INGLE_RETURN_IF_ERROR(writer->check_declarations());
  INGLE_ASSIGN_OR_RETURN(writer->file_, fs.create(path));
  INGLE_RETURN_IF_ERROR(writer->file_->append(as_bytes(writer->header())));
  writer->skip_complete();
  return writer;
}

Status SafetensorsWriter::check_declarations() const {
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors_) {
    const std::string where = path_ + ": tensor " + quote_name(tensor.name);
    const auto bytes = tensor_bytes(tensor.type, tensor.shape);
    if (!bytes || *bytes > INT64_MAX - offset) {
      return Status::internal(where + " has a shape without a size");
    }
    if (!names.insert(tensor.name).second) {
      return Status::internal(where + " is declared twice");
    }
    if (offset % element_size(tensor.type) != 0) {
      return Status::internal(where + " would not be aligned");
    }
    offset += *bytes;
  }
  return Status::ok();
}

std::string SafetensorsWriter::header() const {
  using nlohmann::ordered_json;
  const auto dump = [](const ordered_json& json) {
    return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  // One ordered_json of all would look through what it has at each tensor.
  std::string text = R"({"__metadata__":{"format":"mlx"})";
  uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors_) {
    const uint64_t end = offset + bytes_of(tensor);
    const ordered_json entry = {
        {"dtype", to_string(tensor.type)},
        {"shape", tensor.shape},
        {"data_offsets", {offset, end}}};
    text += "," + dump(tensor.name) + ":" + dump(entry);
    offset = end;
  }
  text += '}';
  text.resize(
      (text.size() + kHeaderAlignment - 1) / kHeaderAlignment *
          kHeaderAlignment,
      ' ');
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length += static_cast<char>(text.size() >> (8 * i));
  }
  return length + text;
}

void SafetensorsWriter::skip_complete() {
  while (current_ < tensors_.size() &&
         written_ == bytes_of(tensors_[current_])) {
    ++current_;
    written_ = 0;
  }
}

Status SafetensorsWriter::append(std::string_view name, ByteView bytes) {
  if (current_ == tensors_.size() || tensors_[current_].name != name) {
    // An empty tensor is complete as soon as its turn comes.
    return bytes.empty()
        ? Status::ok()
        : Status::internal(
              path_ + ": it is not the turn of tensor " + quote_name(name));
  }
  if (bytes.size() > bytes_of(tensors_[current_]) - written_) {
    return Status::internal(
        path_ + ": more bytes than tensor " + quote_name(name) + " has");
  }
  INGLE_RETURN_IF_ERROR(file_->append(bytes));
  written_ += bytes.size();
  skip_complete();
  return Status::ok();
}

Status SafetensorsWriter::finish() {
  if (current_ != tensors_.size()) {
    return Status::internal(
        path_ + ": bytes of tensor " + quote_name(tensors_[current_].name) +
        " are missing");
  }
  INGLE_RETURN_IF_ERROR(file_->sync());
  return file_->close();
}

} // namespace ingle

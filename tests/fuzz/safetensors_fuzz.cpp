// A safetensors file and the index of a folder of them.
//
// An input that begins with "{" is a header, or an index: the length in front
// and the data are put there, so that mutations of the JSON stay readable.
// Every other input is a whole file.

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/log.h"
#include "fuzz/checks.h"
#include "weights/safetensors_reader.h"
#include "weights/safetensors_writer.h"

namespace ingle {
namespace {

using Tensors = std::map<std::string, TensorView>;

constexpr uint64_t kDataBytes = 64; // behind a header that comes alone
const std::string kFile = "model.safetensors";

std::string with_data(std::string_view header) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  file += header;
  for (uint64_t i = 0; i < kDataBytes; ++i) {
    file += static_cast<char>(i);
  }
  return file;
}

void check_extents(const Tensors& tensors, ByteView file) {
  uint64_t total = 0;
  for (const auto& [name, view] : tensors) {
    const auto bytes = tensor_bytes(view.type, view.shape);
    check(bytes == view.bytes.size(), "a tensor has the bytes of its shape");
    check(
        view.bytes.data() >= file.data() &&
            view.bytes.data() + view.bytes.size() <= file.data() + file.size(),
        "a tensor lies inside the file");
    total += view.bytes.size();
  }
  check(total <= file.size(), "tensors share no bytes");
}

// Written again, the tensors are the same.
void check_round_trip(const Tensors& tensors) {
  std::vector<const Tensors::value_type*> order;
  for (const auto& entry : tensors) {
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return element_size(a->second.type) > element_size(b->second.type);
  });
  std::vector<TensorSpec> specs;
  for (const auto* entry : order) {
    specs.push_back({entry->first, entry->second.type, entry->second.shape});
  }
  const auto fs = make_memory_file_system();
  auto writer = SafetensorsWriter::create(*fs, kFile, specs);
  check(writer.is_ok(), "what was read can be written");
  for (const auto* entry : order) {
    const Status status = (*writer)->append(entry->first, entry->second.bytes);
    check(status.is_ok(), "what was read can be written");
  }
  check((*writer)->finish().is_ok(), "what was read can be written");
  const auto again = fs->map(kFile);
  check(again.is_ok(), "what was written is there");
  const auto read = parse_safetensors((*again)->bytes(), kFile);
  check(read.is_ok(), "what was written can be read");
  check(read->size() == tensors.size(), "all tensors were written");
  for (const auto& [name, view] : tensors) {
    const auto found = read->find(name);
    check(found != read->end(), "a name survives");
    check(found->second.type == view.type, "a type survives");
    check(found->second.shape == view.shape, "a shape survives");
    check(as_text(found->second.bytes) == as_text(view.bytes), "bytes survive");
  }
}

void read_file(std::string_view file) {
  const auto tensors = parse_safetensors(as_bytes(file), kFile);
  check_status(
      tensors.status(), {StatusCode::kCorruption, StatusCode::kUnsupported});
  if (tensors.is_ok()) {
    check_extents(*tensors, as_bytes(file));
    check_round_trip(*tensors);
  }
}

constexpr std::string_view kFirstShard =
    R"({"a":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}})";
constexpr std::string_view kSecondShard =
    R"({"b":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}})";

void read_index(std::string_view index) {
  const auto fs = make_memory_file_system();
  check(fs->create_directory("m").is_ok(), "a folder can be made");
  const std::array<std::pair<std::string, std::string>, 3> files = {{
      {"m/1.safetensors", with_data(kFirstShard)},
      {"m/2.safetensors", with_data(kSecondShard)},
      {"m/model.safetensors.index.json", std::string(index)},
  }};
  for (const auto& [path, content] : files) {
    check(
        write_file(*fs, path, as_bytes(content)).is_ok(),
        "a file can be written");
  }
  const auto folder = WeightFolder::open(*fs, "m");
  check_status(
      folder.status(),
      {StatusCode::kCorruption,
       StatusCode::kUnsupported,
       StatusCode::kNotFound});
  if (folder.is_ok()) {
    check((*folder)->tensors().size() <= 2, "tensors come from the shards");
    check(
        (*folder)->total_bytes() == kDataBytes * (*folder)->tensors().size(),
        "tensors have the bytes of the shards");
  }
}

} // namespace
} // namespace ingle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ingle::set_log_level(ingle::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingle;
  const std::string_view input = input_text(data, size);
  if (input.starts_with('{')) {
    read_file(with_data(input));
    read_index(input);
  } else {
    read_file(input);
  }
  return 0;
}

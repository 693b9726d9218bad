#include "weights/safetensors_reader.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "weights/strict_json.h"

namespace ingle {
namespace {

using nlohmann::json;

// The reference reader's limit. A header needs about 150 bytes a tensor.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kLengthBytes = 8;
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

uint64_t read_u64(ByteView bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) {
    value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  }
  return value;
}

// What a file is made of, before its header is believed.
struct Sections {
  std::string_view header;
  ByteView data;
};

Result<Sections> split_file(ByteView file, const std::string& origin) {
  if (file.size() < kLengthBytes) {
    return Status::corruption(
        origin + ": " + std::to_string(file.size()) +
        " bytes are too few for a safetensors file");
  }
  const uint64_t length = read_u64(file);
  const ByteView rest = file.subspan(kLengthBytes);
  if (length > rest.size()) {
    return Status::corruption(
        origin + ": the header should have " + std::to_string(length) +
        " bytes, but the file ends after " + std::to_string(rest.size()) +
        ": not a safetensors file, or cut short");
  }
  if (length > kMaxHeaderBytes) {
    return Status::corruption(
        origin + ": a header of " + std::to_string(length) +
        " bytes is too large");
  }
  return Sections{as_text(rest.first(length)), rest.subspan(length)};
}

std::optional<uint64_t> as_unsigned(const json& value) {
  // A non-negative integer is always parsed as unsigned.
  return value.is_number_unsigned() ? std::optional(value.get<uint64_t>())
                                    : std::nullopt;
}

struct Entry {
  TensorView view;
  uint64_t begin = 0; // offsets into the data section
  uint64_t end = 0;
};

// What is wrong with one tensor's description, or the tensor.
class EntryParser {
 public:
  EntryParser(const std::string& origin, const std::string& name)
      : origin_(origin), name_(name) {}

  Result<Entry> parse(const json& value, ByteView data) const {
    if (!value.is_object() || !value.contains("dtype") ||
        !value.contains("shape") || !value.contains("data_offsets")) {
      return fail("needs a dtype, a shape and data_offsets");
    }
    Entry entry;
    entry.view.file = origin_;
    INGLE_RETURN_IF_ERROR(parse_type(value["dtype"], entry));
    INGLE_RETURN_IF_ERROR(parse_shape(value["shape"], entry));
    INGLE_RETURN_IF_ERROR(parse_offsets(value["data_offsets"], data, entry));
    return entry;
  }

 private:
  Status fail(const std::string& problem) const {
    return Status::corruption(
        origin_ + ": tensor " + quote_name(name_) + " " + problem);
  }

  Status parse_type(const json& value, Entry& entry) const {
    if (!value.is_string()) {
      return fail("has a dtype that is not a string");
    }
    const auto& name = value.get_ref<const std::string&>();
    const auto type = parse_tensor_type(name);
    if (!type) {
      return Status::unsupported(
          origin_ + ": tensor " + quote_name(name_) + " has dtype " +
          quote_name(name) + ", which ingle can't hold");
    }
    entry.view.type = *type;
    return Status::ok();
  }

  Status parse_shape(const json& value, Entry& entry) const {
    if (!value.is_array()) {
      return fail("has a shape that is not an array");
    }
    for (const json& item : value) {
      const auto dim = as_unsigned(item);
      if (!dim || *dim > INT64_MAX) {
        return fail("has a dimension that is not a size");
      }
      entry.view.shape.push_back(static_cast<int64_t>(*dim));
    }
    return Status::ok();
  }

  Status parse_offsets(const json& value, ByteView data, Entry& entry) const {
    const auto begin = value.is_array() && value.size() == 2
        ? as_unsigned(value[0])
        : std::nullopt;
    const auto end = begin ? as_unsigned(value[1]) : std::nullopt;
    if (!end) {
      return fail("has data_offsets that are not two offsets");
    }
    if (*begin > *end) {
      return fail("ends before it begins");
    }
    if (*end > data.size()) {
      return fail(
          "ends at byte " + std::to_string(*end) + " of the data, which has " +
          std::to_string(data.size()) + ": the file is cut short or damaged");
    }
    const auto bytes = tensor_bytes(entry.view.type, entry.view.shape);
    if (!bytes || *bytes != *end - *begin) {
      return fail(
          "has " + std::to_string(*end - *begin) +
          " bytes, which is not what its shape and dtype need");
    }
    entry.begin = *begin;
    entry.end = *end;
    entry.view.bytes = data.subspan(*begin, *end - *begin);
    return Status::ok();
  }

  const std::string& origin_;
  const std::string& name_;
};

// Tensors must lie one after another and fill the data: an overlap or a hole
// means that offsets and data do not belong together.
Status check_layout(
    const std::map<std::string, Entry>& entries,
    uint64_t data_size,
    const std::string& origin) {
  std::vector<std::map<std::string, Entry>::const_pointer> order;
  for (const auto& entry : entries) {
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) <
        std::pair(b->second.begin, b->second.end);
  });
  uint64_t position = 0;
  for (const auto* entry : order) {
    if (entry->second.begin != position) {
      return Status::corruption(
          origin + ": tensor " + quote_name(entry->first) +
          (entry->second.begin < position ? " overlaps the one before it"
                                          : " leaves a hole before it"));
    }
    position = entry->second.end;
  }
  if (position != data_size) {
    return Status::corruption(
        origin + ": " + std::to_string(data_size - position) +
        " bytes at the end belong to no tensor");
  }
  return Status::ok();
}

// Null where MLX was given none to write.
Status check_metadata(const json& metadata, const std::string& origin) {
  bool good = metadata.is_object() || metadata.is_null();
  for (const json& value : metadata) {
    good = good && value.is_string();
  }
  return good
      ? Status::ok()
      : Status::corruption(origin + ": __metadata__ is not a map of strings");
}

// Tensor -> shard, as the index says.
using WeightMap = std::map<std::string, std::string>;

// What file systems take.
constexpr size_t kMaxFileName = 255;

// True iff `name` is a file in the folder itself, not a way out of it, and can
// stand in a message.
bool is_plain_file_name(const std::string& name) {
  const auto is_refused = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '/' || c == '\\' || byte < 0x20 || byte == 0x7f;
  };
  return !name.empty() && name.size() <= kMaxFileName && name != "." &&
      name != ".." && std::none_of(name.begin(), name.end(), is_refused);
}

Result<WeightMap> parse_index(
    std::string_view text,
    const std::string& origin) {
  INGLE_ASSIGN_OR_RETURN(const json index, parse_strict_json(text, origin));
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object() || index["weight_map"].empty()) {
    return Status::corruption(origin + ": has no weight_map");
  }
  WeightMap weight_map;
  for (const auto& [tensor, shard] : index["weight_map"].items()) {
    if (!shard.is_string()) {
      return Status::corruption(
          origin + ": the shard of " + quote_name(tensor) + " is not a string");
    }
    const auto& name = shard.get_ref<const std::string&>();
    if (!is_plain_file_name(name)) {
      return Status::corruption(
          origin + ": shard " + quote_name(name) +
          " is not a file name in the model's folder");
    }
    weight_map.emplace(tensor, name);
  }
  return weight_map;
}

Result<std::shared_ptr<MappedFile>> map_shard(
    FileSystem& fs,
    const std::string& path) {
  auto file = fs.map(path);
  if (file.status().code() == StatusCode::kNotFound) {
    return Status::not_found(
        path + ": this shard, named by " + kIndexFile +
        ", is missing; fetch the model again");
  }
  return file;
}

} // namespace

Result<std::map<std::string, TensorView>> parse_safetensors(
    ByteView file,
    const std::string& origin) {
  INGLE_ASSIGN_OR_RETURN(const Sections parts, split_file(file, origin));
  INGLE_ASSIGN_OR_RETURN(
      const json header, parse_strict_json(parts.header, origin));
  if (!header.is_object()) {
    return Status::corruption(origin + ": the header is not a JSON object");
  }
  std::map<std::string, Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      INGLE_RETURN_IF_ERROR(check_metadata(value, origin));
      continue;
    }
    INGLE_ASSIGN_OR_RETURN(
        auto entry, EntryParser(origin, name).parse(value, parts.data));
    entries.emplace(name, std::move(entry));
  }
  INGLE_RETURN_IF_ERROR(check_layout(entries, parts.data.size(), origin));
  std::map<std::string, TensorView> tensors;
  for (auto& [name, entry] : entries) {
    tensors.emplace(name, std::move(entry.view));
  }
  return tensors;
}

Result<std::unique_ptr<const WeightFolder>> WeightFolder::open(
    FileSystem& fs,
    const std::string& folder) {
  std::unique_ptr<WeightFolder> weights(new WeightFolder);
  const std::string single = join_path(folder, kSingleFile);
  auto file = fs.map(single);
  if (file.is_ok()) {
    INGLE_ASSIGN_OR_RETURN(
        weights->tensors_, parse_safetensors((*file)->bytes(), single));
    weights->files_.push_back(*file);
    return std::unique_ptr<const WeightFolder>(std::move(weights));
  }
  if (file.status().code() != StatusCode::kNotFound) {
    return file.status();
  }
  const std::string index_path = join_path(folder, kIndexFile);
  const auto index = fs.read(index_path);
  if (index.status().code() == StatusCode::kNotFound) {
    return Status::not_found(
        folder + ": has neither " + kSingleFile + " nor " + kIndexFile +
        ", so it is not a model folder");
  }
  INGLE_RETURN_IF_ERROR(index.status());
  INGLE_RETURN_IF_ERROR(weights->open_shards(fs, folder, *index));
  return std::unique_ptr<const WeightFolder>(std::move(weights));
}

Status WeightFolder::open_shards(
    FileSystem& fs,
    const std::string& folder,
    std::string_view index) {
  const std::string index_path = join_path(folder, kIndexFile);
  INGLE_ASSIGN_OR_RETURN(
      const WeightMap weight_map, parse_index(index, index_path));
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : weight_map) {
    shards.insert(shard);
  }
  for (const std::string& shard : shards) {
    const std::string path = join_path(folder, shard);
    INGLE_ASSIGN_OR_RETURN(auto file, map_shard(fs, path));
    INGLE_ASSIGN_OR_RETURN(
        auto tensors, parse_safetensors(file->bytes(), path));
    for (auto& [name, view] : tensors) {
      const auto entry = weight_map.find(name);
      if (entry == weight_map.end() || entry->second != shard) {
        return Status::corruption(
            path + ": has tensor " + quote_name(name) + ", which " +
            kIndexFile + " does not place there");
      }
      tensors_.emplace(name, std::move(view));
    }
    files_.push_back(std::move(file));
  }
  for (const auto& [tensor, shard] : weight_map) {
    if (tensors_.count(tensor) == 0) {
      return Status::corruption(
          join_path(folder, shard) + ": lacks tensor " + quote_name(tensor) +
          ", which " + kIndexFile + " places there");
    }
  }
  return Status::ok();
}

void WeightFolder::release(const TensorView& tensor) const {
  const std::less_equal<> not_after; // of pointers into different files, too
  for (const auto& file : files_) {
    const ByteView bytes = file->bytes();
    if (not_after(bytes.data(), tensor.bytes.data()) &&
        not_after(
            tensor.bytes.data() + tensor.bytes.size(),
            bytes.data() + bytes.size())) {
      file->release(tensor.bytes);
    }
  }
}

uint64_t WeightFolder::total_bytes() const {
  uint64_t total = 0;
  for (const auto& [name, view] : tensors_) {
    total += view.bytes.size();
  }
  return total;
}

} // namespace ingle

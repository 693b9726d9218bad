#include "import/gguf_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint32_t kMaxDimensions = 4;
// The least bytes that one entry takes; a count above file size / this is a
// lie that we don't allocate for.
constexpr uint64_t kMinMetadataBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;
constexpr uint64_t kMinStringBytes = 8;

// Reads forward. After a read past the end it has failed for good and returns
// zeroes, so that a sequence of reads needs one check.
class Cursor {
 public:
  explicit Cursor(ByteView bytes) : rest_(bytes), size_(bytes.size()) {}

  template <typename T>
  T read() {
    T value{};
    if (const ByteView bytes = take(sizeof(T)); !bytes.empty()) {
      std::memcpy(&value, bytes.data(), sizeof(T)); // both little-endian
    }
    return value;
  }
  std::string_view read_string() {
    return as_text(take(read<uint64_t>()));
  }
  ByteView take(uint64_t bytes) {
    if (failed_ || bytes > rest_.size()) {
      failed_ = true;
      return {};
    }
    const ByteView taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  bool failed() const {
    return failed_;
  }
  uint64_t remaining() const {
    return rest_.size();
  }
  uint64_t position() const {
    return size_ - rest_.size();
  }

 private:
  ByteView rest_;
  uint64_t size_;
  bool failed_ = false;
};

// Bytes of one number; 0 for strings, arrays and unknown types.
size_t number_size(GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kI8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kU16:
    case GgufValueType::kI16:
      return 2;
    case GgufValueType::kU32:
    case GgufValueType::kI32:
    case GgufValueType::kF32:
      return 4;
    case GgufValueType::kU64:
    case GgufValueType::kI64:
    case GgufValueType::kF64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return 0;
}

GgufValue read_number(Cursor& cursor, GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
      return uint64_t{cursor.read<uint8_t>()};
    case GgufValueType::kI8:
      return int64_t{cursor.read<int8_t>()};
    case GgufValueType::kU16:
      return uint64_t{cursor.read<uint16_t>()};
    case GgufValueType::kI16:
      return int64_t{cursor.read<int16_t>()};
    case GgufValueType::kU32:
      return uint64_t{cursor.read<uint32_t>()};
    case GgufValueType::kI32:
      return int64_t{cursor.read<int32_t>()};
    case GgufValueType::kU64:
      return cursor.read<uint64_t>();
    case GgufValueType::kI64:
      return cursor.read<int64_t>();
    case GgufValueType::kF32:
      return cursor.read<float>();
    case GgufValueType::kF64:
      return static_cast<float>(cursor.read<double>());
    default: // kBool
      return cursor.read<uint8_t>() != 0;
  }
}

uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace

class GgufParser {
 public:
  GgufParser(ByteView file, const std::string& origin)
      : file_(file), cursor_(file) {
    result_.origin_ = origin;
  }

  Result<GgufFile> parse() {
    INGLE_RETURN_IF_ERROR(parse_magic());
    const auto tensor_count = cursor_.read<uint64_t>();
    const auto metadata_count = cursor_.read<uint64_t>();
    if (cursor_.failed()) {
      return fail("is cut short in its header");
    }
    if (metadata_count > cursor_.remaining() / kMinMetadataBytes) {
      return fail(
          "claims " + std::to_string(metadata_count) +
          " metadata entries, more than fit in the file");
    }
    for (uint64_t i = 0; i < metadata_count; ++i) {
      INGLE_RETURN_IF_ERROR(parse_metadata(i));
    }
    if (tensor_count > cursor_.remaining() / kMinTensorBytes) {
      return fail(
          "claims " + std::to_string(tensor_count) +
          " tensors, more than fit in the file");
    }
    for (uint64_t i = 0; i < tensor_count; ++i) {
      INGLE_RETURN_IF_ERROR(parse_tensor_info(i));
    }
    INGLE_RETURN_IF_ERROR(place_tensors());
    return std::move(result_);
  }

 private:
  Status fail(const std::string& problem) const {
    return Status::corruption(result_.origin_ + ": " + problem);
  }

  Status parse_magic() {
    if (as_text(cursor_.take(kMagic.size())) != kMagic) {
      return fail("is not a GGUF file");
    }
    const auto version = cursor_.read<uint32_t>();
    if (cursor_.failed()) {
      return fail("is cut short in its header");
    }
    if (version == 2 || version == 3) {
      return Status::ok();
    }
    const bool is_swapped = (version & 0xffff) == 0;
    return Status::unsupported(
        result_.origin_ +
        (is_swapped ? ": is a big-endian GGUF file"
                    : ": has GGUF version " + std::to_string(version)) +
        ", which ingle does not read; convert the model to GGUF version 3, "
        "little-endian");
  }

  Status parse_metadata(uint64_t index) {
    std::string key(cursor_.read_string());
    const auto type = static_cast<GgufValueType>(cursor_.read<uint32_t>());
    if (cursor_.failed()) {
      return fail(
          "is cut short, or damaged, at metadata entry " +
          std::to_string(index));
    }
    INGLE_ASSIGN_OR_RETURN(auto value, parse_value(key, type));
    if (cursor_.failed()) {
      return fail(
          "is cut short, or damaged, in metadata key " + quote_name(key));
    }
    if (!result_.metadata_.emplace(key, std::move(value)).second) {
      return fail("has metadata key " + quote_name(key) + " twice");
    }
    return Status::ok();
  }

  Result<GgufValue> parse_value(const std::string& key, GgufValueType type) {
    if (type == GgufValueType::kString) {
      return GgufValue(cursor_.read_string());
    }
    if (type == GgufValueType::kArray) {
      return parse_array(key);
    }
    if (number_size(type) == 0) {
      return unknown_type(key, type);
    }
    return read_number(cursor_, type);
  }

  Status unknown_type(const std::string& key, GgufValueType type) const {
    return fail(
        "has metadata key " + quote_name(key) + " of unknown type " +
        std::to_string(static_cast<uint32_t>(type)));
  }

  Result<GgufValue> parse_array(const std::string& key) {
    GgufArray array;
    array.element_type = static_cast<GgufValueType>(cursor_.read<uint32_t>());
    const auto count = cursor_.read<uint64_t>();
    const bool is_strings = array.element_type == GgufValueType::kString;
    const uint64_t size =
        is_strings ? kMinStringBytes : number_size(array.element_type);
    if (cursor_.failed()) {
      return GgufValue(); // the caller reports it
    }
    if (array.element_type == GgufValueType::kArray) {
      return fail(
          "has metadata key " + quote_name(key) +
          " with nested arrays, which ingle does not read");
    }
    if (size == 0) {
      return unknown_type(key, array.element_type);
    }
    if (count > cursor_.remaining() / size) {
      return fail(
          "has metadata key " + quote_name(key) + " with " +
          std::to_string(count) + " elements, more than fit in the file");
    }
    if (is_strings) {
      array.strings.reserve(count);
      for (uint64_t i = 0; i < count && !cursor_.failed(); ++i) {
        array.strings.push_back(cursor_.read_string());
      }
    } else {
      array.numbers = cursor_.take(count * size);
    }
    return GgufValue(std::move(array));
  }

  Status parse_tensor_info(uint64_t index) {
    GgufTensor tensor;
    tensor.name = cursor_.read_string();
    const auto dimensions = cursor_.read<uint32_t>();
    if (!cursor_.failed() && (dimensions == 0 || dimensions > kMaxDimensions)) {
      return fail_tensor(
          tensor.name, "has " + std::to_string(dimensions) + " dimensions");
    }
    bool has_size = true;
    int64_t elements = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
      const auto dim = cursor_.read<uint64_t>();
      has_size = has_size && dim > 0 && dim <= INT64_MAX;
      has_size = has_size &&
          !__builtin_mul_overflow(
                     elements, static_cast<int64_t>(dim), &elements);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(dim));
    }
    const auto type = cursor_.read<uint32_t>();
    offsets_.push_back(cursor_.read<uint64_t>());
    if (cursor_.failed()) {
      return fail(
          "is cut short, or damaged, at tensor " + std::to_string(index));
    }
    if (!has_size) {
      return fail_tensor(tensor.name, "has a shape without a size");
    }
    const auto known = parse_ggml_type(type);
    if (!known) {
      return Status::unsupported(
          result_.origin_ + ": tensor " + quote_name(tensor.name) + " is " +
          ggml_type_name(type) + ", which ingle does not read; it reads " +
          supported_ggml_types());
    }
    tensor.type = *known;
    return add_tensor(std::move(tensor), elements);
  }

  Status add_tensor(GgufTensor tensor, int64_t elements) {
    const GgmlTypeInfo& info = ggml_type_info(tensor.type);
    const auto block = static_cast<int64_t>(info.block_elements);
    if (tensor.columns() % block != 0) {
      return fail_tensor(
          tensor.name,
          "has rows of " + std::to_string(tensor.columns()) +
              " elements, not whole blocks of " + std::string(info.name));
    }
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(
            static_cast<uint64_t>(elements / block),
            info.block_bytes,
            &bytes)) {
      return fail_tensor(tensor.name, "has a shape without a size");
    }
    sizes_.push_back(bytes);
    const size_t index = result_.tensors_.size();
    if (!result_.tensor_index_.emplace(tensor.name, index).second) {
      return fail_tensor(tensor.name, "stands twice");
    }
    result_.tensors_.push_back(std::move(tensor));
    return Status::ok();
  }

  Status fail_tensor(std::string_view name, const std::string& problem) const {
    return fail("tensor " + quote_name(name) + " " + problem);
  }

  Status place_tensors() {
    INGLE_ASSIGN_OR_RETURN(
        const auto alignment, result_.find<uint64_t>("general.alignment"));
    const uint64_t step = alignment.value_or(kDefaultAlignment);
    if (!std::has_single_bit(step) || step > kMaxAlignment) {
      return fail("has an alignment of " + std::to_string(step));
    }
    const uint64_t start =
        std::min<uint64_t>(round_up(cursor_.position(), step), file_.size());
    const ByteView data = file_.subspan(start);
    for (size_t i = 0; i < result_.tensors_.size(); ++i) {
      GgufTensor& tensor = result_.tensors_[i];
      if (offsets_[i] % step != 0) {
        return fail_tensor(tensor.name, "is not aligned");
      }
      if (offsets_[i] > data.size() || sizes_[i] > data.size() - offsets_[i]) {
        return fail_tensor(
            tensor.name, "ends past the end of the file, which is cut short");
      }
      tensor.bytes = data.subspan(offsets_[i], sizes_[i]);
    }
    return check_overlaps();
  }

  Status check_overlaps() const {
    std::vector<const GgufTensor*> order;
    for (const GgufTensor& tensor : result_.tensors_) {
      order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return a->bytes.data() < b->bytes.data();
    });
    for (size_t i = 1; i < order.size(); ++i) {
      const ByteView before = order[i - 1]->bytes;
      if (before.data() + before.size() > order[i]->bytes.data()) {
        return fail_tensor(
            order[i]->name, "overlaps " + quote_name(order[i - 1]->name));
      }
    }
    return Status::ok();
  }

  ByteView file_;
  Cursor cursor_;
  GgufFile result_;
  std::vector<uint64_t> offsets_; // of tensors, into the data
  std::vector<uint64_t> sizes_; // of tensors, bytes
};

int64_t GgufTensor::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    rows *= shape[i];
  }
  return rows;
}

Result<GgufFile> GgufFile::parse(ByteView file, const std::string& origin) {
  return GgufParser(file, origin).parse();
}

Status GgufFile::missing(const std::string& key) const {
  return Status::corruption(
      origin_ + ": metadata key " + quote_name(key) + " is missing");
}

Status GgufFile::wrong_type(const std::string& key) const {
  return Status::corruption(
      origin_ + ": metadata key " + quote_name(key) +
      " has a value of the wrong type");
}

template <typename T>
Result<std::optional<T>> GgufFile::find(const std::string& key) const {
  const auto entry = metadata_.find(key);
  if (entry == metadata_.end()) {
    return std::optional<T>();
  }
  if constexpr (std::is_same_v<T, const GgufArray*>) {
    const auto* array = std::get_if<GgufArray>(&entry->second);
    return array == nullptr ? Result<std::optional<T>>(wrong_type(key))
                            : std::optional<T>(array);
  } else {
    if (const T* value = std::get_if<T>(&entry->second)) {
      return std::optional<T>(*value);
    }
    if constexpr (std::is_same_v<T, uint64_t>) {
      const auto* value = std::get_if<int64_t>(&entry->second);
      if (value != nullptr && *value >= 0) {
        return std::optional<T>(static_cast<uint64_t>(*value));
      }
    }
    return wrong_type(key);
  }
}

template <typename T>
Result<T> GgufFile::get(const std::string& key) const {
  INGLE_ASSIGN_OR_RETURN(const auto value, find<T>(key));
  if (!value) {
    return missing(key);
  }
  return *value;
}

template <typename T>
Result<std::vector<T>> GgufFile::get_list(const std::string& key) const {
  INGLE_ASSIGN_OR_RETURN(const auto* array, get<const GgufArray*>(key));
  if constexpr (std::is_same_v<T, std::string_view>) {
    if (array->element_type != GgufValueType::kString) {
      return wrong_type(key);
    }
    return array->strings;
  } else {
    const bool is_right = std::is_same_v<T, float>
        ? array->element_type == GgufValueType::kF32
        : array->element_type == GgufValueType::kI32 ||
            array->element_type == GgufValueType::kU32;
    if (!is_right) {
      return wrong_type(key);
    }
    std::vector<T> list(array->numbers.size() / sizeof(T));
    if (!list.empty()) {
      std::memcpy(list.data(), array->numbers.data(), array->numbers.size());
    }
    return list;
  }
}

bool GgufFile::is_list(const std::string& key) const {
  const auto entry = metadata_.find(key);
  return entry != metadata_.end() &&
      std::holds_alternative<GgufArray>(entry->second);
}

template Result<uint64_t> GgufFile::get(const std::string&) const;
template Result<float> GgufFile::get(const std::string&) const;
template Result<bool> GgufFile::get(const std::string&) const;
template Result<std::string_view> GgufFile::get(const std::string&) const;
template Result<std::optional<uint64_t>> GgufFile::find(
    const std::string&) const;
template Result<std::optional<float>> GgufFile::find(const std::string&) const;
template Result<std::optional<bool>> GgufFile::find(const std::string&) const;
template Result<std::optional<std::string_view>> GgufFile::find(
    const std::string&) const;
template Result<std::vector<int32_t>> GgufFile::get_list(
    const std::string&) const;
template Result<std::vector<float>> GgufFile::get_list(
    const std::string&) const;
template Result<std::vector<std::string_view>> GgufFile::get_list(
    const std::string&) const;

const GgufTensor* GgufFile::find_tensor(const std::string& name) const {
  const auto entry = tensor_index_.find(name);
  return entry == tensor_index_.end() ? nullptr : &tensors_[entry->second];
}

} // namespace ingle

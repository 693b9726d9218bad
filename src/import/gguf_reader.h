// Reads GGUF files, versions 2 and 3, little-endian. Hostile input.
//
// Every length, count, offset and product is checked before it is used or
// memory is allocated for it; memory grows with the file's size only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "import/ggml_types.h"

namespace ingle {

// The numbers are those of the file format.
enum class GgufValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// An array in the file. Arrays of arrays are not read: no known file has one.
struct GgufArray {
  GgufValueType element_type = GgufValueType::kU8;
  ByteView numbers; // the elements as they stand in the file; or:
  std::vector<std::string_view> strings;
};

using GgufValue = std::variant<
    uint64_t, // every unsigned type
    int64_t, // every signed type
    float, // both float types
    bool,
    std::string_view,
    GgufArray>;

struct GgufTensor {
  std::string name;
  GgmlType type = GgmlType::kF32;
  std::vector<int64_t> shape; // outermost first: the file's order reversed
  ByteView bytes;

  int64_t columns() const {
    return shape.back();
  }
  // All dimensions but the last as one.
  int64_t rows() const;
};

// Owns:    nothing of the file: views live as long as the bytes it parsed.
// Threads: any; const after parsing.
class GgufFile {
 public:
  // `origin` is the file's path. Errors: kCorruption; kUnsupported (version 1,
  // big-endian, a tensor type that ingle does not read).
  static Result<GgufFile> parse(ByteView file, const std::string& origin);

  // The value of `key` as T: uint64_t (any integer that is not negative),
  // float, bool, std::string_view or const GgufArray*. get() needs it to be
  // there; find() returns nothing where it is not.
  // Errors: kCorruption (missing, or of another type), naming file and key.
  template <typename T>
  Result<T> get(const std::string& key) const;
  template <typename T>
  Result<std::optional<T>> find(const std::string& key) const;

  // As get(); the array's elements as T: int32_t, float or std::string_view.
  template <typename T>
  Result<std::vector<T>> get_list(const std::string& key) const;

  // True iff `key` is there and has an array.
  bool is_list(const std::string& key) const;

  // In the order of the file; names are unique.
  const std::vector<GgufTensor>& tensors() const {
    return tensors_;
  }
  // Null where there is none.
  const GgufTensor* find_tensor(const std::string& name) const;

  const std::string& origin() const {
    return origin_;
  }

 private:
  friend class GgufParser;
  Status missing(const std::string& key) const;
  Status wrong_type(const std::string& key) const;

  std::string origin_;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t> tensor_index_;
};

} // namespace ingle

// Reads safetensors: one file, or a folder of them. Hostile input.
//
// Format: 8 bytes little-endian header length, a JSON header, the data
// (github.com/huggingface/safetensors). Everything that the header claims is
// checked before it is used: lengths, offsets, overlaps, overflow, sizes
// against shapes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "weights/tensor.h"

namespace ingle {

// Parses and checks the header of a whole file. `origin` is its path.
// Errors: kCorruption, one line that names the file and what is wrong;
// kUnsupported where a tensor's dtype is one that TensorType lacks.
Result<std::map<std::string, TensorView>> parse_safetensors(
    ByteView file,
    const std::string& origin);

// All tensors of a model folder: `model.safetensors`, or the shards that
// `model.safetensors.index.json` names.
//
// Owns:    the mappings; every TensorView lives as long as this object.
// Threads: any; const after opening.
class WeightFolder {
 public:
  // Errors: kNotFound (no weights, or a shard is missing: the message names
  // the shard), kCorruption (also: the index names a tensor that its shard
  // does not have, a shard has one the index does not name, or a shard's name
  // leaves the folder), kUnsupported (as parse_safetensors), kIo.
  static Result<std::unique_ptr<const WeightFolder>> open(
      FileSystem& fs,
      const std::string& folder);

  const std::map<std::string, TensorView>& tensors() const {
    return tensors_;
  }
  // Bytes of all tensors.
  uint64_t total_bytes() const;
  // The tensor's bytes are not needed soon: see MappedFile::release().
  void release(const TensorView& tensor) const;

 private:
  WeightFolder() = default;
  Status open_shards(
      FileSystem& fs,
      const std::string& folder,
      std::string_view index);

  std::vector<std::shared_ptr<MappedFile>> files_;
  std::map<std::string, TensorView> tensors_;
};

} // namespace ingle

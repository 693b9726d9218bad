// Writes one safetensors file as a stream.
//
// The file is what MLX and Hugging Face write: 8 bytes header length, a JSON
// header padded with spaces to a multiple of 8, then the tensors one after
// another; metadata {"format": "mlx"}.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "weights/tensor.h"

namespace ingle {

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
};

// Every tensor is declared up front, then its bytes are appended in the order
// of the declarations, in pieces of any size.
//
// Threads: one.
// Crash:   the file is whole only after finish(); write under a temporary name.
class SafetensorsWriter {
 public:
  // Creates the file and writes the header. Declare wide elements first: each
  // tensor must start at a multiple of its element size, so that a mapped file
  // can be read in place.
  // Errors: kInternal (a name twice, a shape without a size, a tensor out of
  // alignment), kNoSpace, kIo, kNotFound (no such folder).
  static Result<std::unique_ptr<SafetensorsWriter>> create(
      FileSystem& fs,
      const std::string& path,
      std::vector<TensorSpec> tensors);

  // The next bytes of `name`. Errors: kInternal (not this tensor's turn, or
  // more bytes than it has), kNoSpace, kIo.
  Status append(std::string_view name, ByteView bytes);
  // Syncs and closes. Errors: kInternal (bytes are missing), kNoSpace, kIo.
  Status finish();

 private:
  SafetensorsWriter(std::string path, std::vector<TensorSpec> tensors);
  std::string header() const;
  Status check_declarations() const;
  void skip_complete();

  std::string path_;
  std::vector<TensorSpec> tensors_;
  std::unique_ptr<WritableFile> file_;
  size_t current_ = 0; // the tensor being written
  uint64_t written_ = 0; // bytes of it
};

} // namespace ingle

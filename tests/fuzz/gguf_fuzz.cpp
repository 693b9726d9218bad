// A GGUF file, read and imported.

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/log.h"
#include "fuzz/checks.h"
#include "import/gguf_reader.h"
#include "import/import_model.h"
#include "text/tokenizer.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

const std::string kFile = "files/model.gguf";
const std::string kFolder = "models/model";

void check_tensor(const GgufTensor& tensor, ByteView file) {
  check(!tensor.shape.empty(), "a tensor has dimensions");
  int64_t elements = 1;
  for (const int64_t dim : tensor.shape) {
    check(
        dim > 0 && dim <= std::numeric_limits<int64_t>::max() / elements,
        "a shape has a size");
    elements *= dim;
  }
  const GgmlTypeInfo& info = ggml_type_info(tensor.type);
  const auto size = static_cast<uint64_t>(elements);
  check(
      tensor.bytes.size() == size / info.block_elements * info.block_bytes,
      "a tensor has the bytes of its shape");
  check(
      tensor.bytes.data() >= file.data() &&
          tensor.bytes.data() + tensor.bytes.size() <=
              file.data() + file.size(),
      "a tensor lies inside the file");
}

void check_tensors(const GgufFile& gguf, ByteView file) {
  std::vector<ByteView> extents;
  for (const GgufTensor& tensor : gguf.tensors()) {
    check_tensor(tensor, file);
    check(gguf.find_tensor(tensor.name) == &tensor, "names are unique");
    extents.push_back(tensor.bytes);
  }
  std::sort(extents.begin(), extents.end(), [](ByteView a, ByteView b) {
    return a.data() < b.data();
  });
  for (size_t i = 1; i < extents.size(); ++i) {
    check(
        extents[i - 1].data() + extents[i - 1].size() <= extents[i].data(),
        "tensors do not overlap");
  }
}

void check_imported(FileSystem& fs) {
  const auto weights = WeightFolder::open(fs, kFolder);
  check(weights.is_ok(), "imported weights can be opened");
  const auto tokenizer = Tokenizer::load(fs, kFolder + "/tokenizer.json");
  check(tokenizer.is_ok(), "an imported tokenizer can be loaded");
}

void import_file(ByteView file) {
  const auto fs = make_memory_file_system();
  check(fs->create_directory("files").is_ok(), "a folder can be made");
  check(fs->create_directory("models").is_ok(), "a folder can be made");
  check(write_file(*fs, kFile, file).is_ok(), "a file can be written");
  const auto report = import_gguf(*fs, kFile, kFolder);
  check_status(
      report.status(), {StatusCode::kCorruption, StatusCode::kUnsupported});
  const auto left = fs->list("models");
  check(left.is_ok(), "a folder can be listed");
  if (report.is_ok()) {
    check(*left == std::vector<std::string>{"model"}, "the folder is there");
    check_imported(*fs);
  } else {
    check(left->empty(), "a failed import leaves nothing behind");
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
  const ByteView file = as_bytes(input_text(data, size));
  const auto gguf = GgufFile::parse(file, kFile);
  check_status(
      gguf.status(), {StatusCode::kCorruption, StatusCode::kUnsupported});
  if (gguf.is_ok()) {
    check_tensors(*gguf, file);
    import_file(file);
  }
  return 0;
}

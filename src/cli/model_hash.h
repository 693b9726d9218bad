// Which weights a figure was measured with.
#pragma once

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

// XXH3 (128 bits, in hexadecimal) of config.json and the safetensors files of
// a model folder: their names, sizes and contents, in the order of their names.
// Errors: kNotFound, kIo.
Result<std::string> model_hash(FileSystem& fs, const std::string& folder);

} // namespace ingle

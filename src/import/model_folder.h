// Writes a model folder so that it is there whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

struct TextFile {
  std::string name;
  std::string content;
};

// `folder` without slashes at its end.
// Errors: kInvalidRequest (it names no new folder, or exists and is not empty),
//         kIo.
Result<std::string> new_model_folder(FileSystem& fs, std::string folder);

// Writes the text files and, by `write_weights` with the path that it is to
// write, model.safetensors, of about `weight_bytes`, to a temporary folder
// beside `folder`, which is renamed when it is whole and durable.
//
// Requires: new_model_folder(fs, folder) is `folder`.
// Errors:   kNoSpace, kIo, those of `write_weights`. After an error neither
//           `folder` nor the temporary one is there.
// Crash:    `folder` is absent or whole. A temporary folder that was left is
//           removed by the next call for the same place; so two at once for one
//           place end with at least one failing.
Status write_model_folder(
    FileSystem& fs,
    const std::string& folder,
    const std::vector<TextFile>& files,
    uint64_t weight_bytes,
    const std::function<Status(const std::string& path)>& write_weights);

} // namespace ingle

// The default model, where it is there.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "model/load_model.h"

namespace ingle {

inline constexpr char kNoDefaultModel[] =
    "the default model is not in $INGLE_HOME/models: run scripts/setup";

inline std::string default_model_folder() {
  const char* home = std::getenv("INGLE_HOME");
  return join_path(home ? home : "", "models/SmolLM2-135M-Instruct");
}

// Null where it can't be loaded.
inline std::unique_ptr<const Model> load_default_model(
    const RunOptions& options) {
  const auto fs = make_posix_file_system();
  auto loaded = load_model(*fs, default_model_folder(), options);
  return loaded.is_ok() ? std::move(loaded).value() : nullptr;
}

} // namespace ingle

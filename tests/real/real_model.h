// Real models, where they are there.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "model/load_model.h"

namespace ingle {

struct RealModel {
  const char* name; // of its folder
  const char* absent; // what to say then
};

inline constexpr RealModel kSmollm2{
    "SmolLM2-135M-Instruct",
    "the default model is not in $INGLE_HOME/models: run scripts/setup"};
inline constexpr RealModel kGemma3{
    "gemma-3-270m",
    "gemma-3-270m is not in $INGLE_HOME/models: run scripts/setup real"};

inline std::string folder_of(const RealModel& model) {
  const char* home = std::getenv("INGLE_HOME");
  return join_path(home ? home : "", std::string("models/") + model.name);
}

// Null where it can't be loaded.
inline std::unique_ptr<const Model> load(
    const RealModel& model,
    const RunOptions& options) {
  const auto fs = make_posix_file_system();
  auto loaded = load_model(*fs, folder_of(model), options);
  return loaded.is_ok() ? std::move(loaded).value() : nullptr;
}

} // namespace ingle

// What an adapter's folder says of its scale.
//
// Private to the folders that read model files: part of lora.h.
#pragma once

#include <map>
#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace ingle {

class LoraConfig {
 public:
  // Reads optiq_lora_config.json, else adapter_config.json.
  // Errors: kNotFound, kIo, kCorruption, kUnsupported (DoRA, other methods,
  //         whole modules and biases beside the adapter); one line that names
  //         the file and the field.
  static Result<LoraConfig> read(FileSystem& fs, const std::string& folder);

  // Of a module whose A and B have this rank: lora_parameters.scale (20), over
  // its root with rs_lora; else lora_alpha (16) / r (8), with use_rslora
  // lora_alpha over r's root, both as the patterns say of the module.
  // Errors: kCorruption (the rank is not the one that is said).
  Result<float> scale_of(const std::string& module, int rank) const;

  // Of a module that no pattern names.
  float scale() const;
  int rank() const { // 0: it is not said
    return rank_;
  }
  // The model that it was made for, as it is called there; empty: not said.
  const std::string& base_model() const {
    return base_model_;
  }

 private:
  std::string origin_;
  std::string base_model_;
  bool is_peft_ = false; // lora_alpha and r count, and the patterns
  float scale_ = 0; // mlx-lm's
  float alpha_ = 0;
  int rank_ = 0;
  bool has_root_ = false; // rs_lora, use_rslora
  // By the end of a module's name.
  std::map<std::string, float> alphas_;
  std::map<std::string, float> ranks_;
};

} // namespace ingle

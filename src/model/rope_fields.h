// Rotary position embeddings in config.json. It may say them in three places:
// beside the other fields, in `rope_scaling`, and in `rope_parameters`; the
// latter two hold the fields of all layers, or an object of fields for each
// kind of layer. What stands in several places has to be the same.
//
// Private to model/: includes nlohmann/json.
#pragma once

#include <string>

#include "base/status.h"
#include "model/field_reader.h"
#include "model/rope_config.h"

namespace ingle {

// What a family has where its file says nothing.
struct RopeDefaults {
  float theta = 1e4f;
  float rotary_factor = 1;
  bool traditional = false;
  // Types of scaling other than linear and longrope count as none.
  bool drops_other_types = false;
};

// Where the rope of a kind of layers is said.
struct RopePlace {
  const char* layers = "full_attention";
  const char* theta = "rope_theta"; // beside the other fields
  bool takes_common = true; // what is said of all layers is said of these
};

// `context`: max_position_embeddings. The config is for heads of any size:
// check_rope() knows whether it fits.
// Errors: kCorruption (a field that is missing, of the wrong type or out of
// range, or in two places with different values), kUnsupported (a type).
Result<RopeConfig> read_rope(
    FieldReader& fields,
    const std::string& origin,
    int context,
    const RopeDefaults& usual,
    const RopePlace& place = {});

// Errors: kCorruption.
Status
check_rope(const RopeConfig& rope, int head_dim, const std::string& origin);

} // namespace ingle

#include "model/families/families.h"

namespace ingle {

// Most layers have a window, all but every fourth if the file names none, and
// their positions are not scaled: what is said of all ropes is said of the
// others.
Status read_olmo3(
    FieldReader& fields,
    const std::string& origin,
    ModelConfig& config) {
  constexpr size_t kPattern = 4;
  INGLE_RETURN_IF_ERROR(read_olmo_layers(fields, origin, config));
  INGLE_ASSIGN_OR_RETURN(
      auto windowed, read_windowed_layers(fields, origin, config));
  if (!windowed) {
    windowed.emplace();
    for (size_t i = 0; i < config.layers.size(); ++i) {
      windowed->push_back((i + 1) % kPattern != 0);
    }
  }
  INGLE_ASSIGN_OR_RETURN(
      const RopeConfig local,
      read_rope(
          fields,
          origin,
          config.max_position_embeddings,
          {.theta = config.ropes.front().theta},
          {.layers = "sliding_attention", .takes_common = false}));
  set_windows(*windowed, fields.size("sliding_window"), local, config);
  return fields.status();
}

} // namespace ingle

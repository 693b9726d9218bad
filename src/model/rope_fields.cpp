#include "model/rope_fields.h"

#include <cmath>
#include <map>

#include "base/log.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr double kTiny = 1e-12;
constexpr double kHuge = 1e12;

// The fields of a rope from all places, as one object.
class CommonFields {
 public:
  explicit CommonFields(std::string origin) : origin_(std::move(origin)) {}

  const Json& object() const {
    return fields_;
  }

  // Both spellings of a field count as one, and both names of a type.
  Status add(std::string key, Json value, const std::string& place) {
    if (value.is_null()) {
      return Status::ok();
    }
    if (key == "type") {
      key = "rope_type";
    }
    if (key == "rope_type" && value == "su") {
      value = "longrope";
    }
    const auto known = places_.find(key);
    if (known != places_.end() && fields_[key] != value) {
      return Status::corruption(
          origin_ + ": " + quote_name(key) + " of " + known->second + " and " +
          place + " differ; keep the right one");
    }
    places_.try_emplace(key, place);
    fields_[std::move(key)] = std::move(value);
    return Status::ok();
  }

  Status add_all(const Json& object, const std::string& place) {
    for (const auto& [key, value] : object.items()) {
      INGLE_RETURN_IF_ERROR(add(key, value, place));
    }
    return Status::ok();
  }

 private:
  std::string origin_;
  Json fields_ = Json::object();
  std::map<std::string, std::string> places_; // where each was first
};

// Some tools write it beside the kinds of layers.
bool says_nothing(const std::string& key, const Json& value) {
  return value.is_null() ||
      ((key == "rope_type" || key == "type") && value == "default");
}

// The part of rope_scaling or rope_parameters that is about `place`; null:
// none is.
Result<const Json*>
part_of(const Json& object, const RopePlace& place, const std::string& where) {
  if (!object.is_object()) {
    return Status::corruption(where + " has to be an object");
  }
  bool has_kinds = false;
  bool has_fields = false;
  for (const auto& [key, value] : object.items()) {
    const bool is_kind = key.ends_with("_attention");
    has_kinds |= is_kind;
    has_fields |= !is_kind && !says_nothing(key, value);
    if (is_kind && !value.is_object() && !value.is_null()) {
      return Status::corruption(where + "." + key + " has to be an object");
    }
  }
  if (has_kinds && has_fields) {
    return Status::corruption(
        where + " has to be of all layers or of kinds of layers, not both");
  }
  if (!has_kinds) {
    return place.takes_common ? &object : nullptr;
  }
  const auto own = object.find(place.layers);
  return own == object.end() || own->is_null() ? nullptr : &*own;
}

// All that the file says of the place; `where` becomes the places' names.
Result<CommonFields> gather(
    FieldReader& fields,
    const std::string& origin,
    const RopePlace& place,
    std::string& where) {
  CommonFields common(origin);
  for (const auto& [key, name] :
       {std::pair{place.theta, "rope_theta"},
        std::pair{"partial_rotary_factor", "partial_rotary_factor"},
        std::pair{
            "original_max_position_embeddings",
            "original_max_position_embeddings"}}) {
    if (const Json* value = fields.find(key)) {
      INGLE_RETURN_IF_ERROR(common.add(name, *value, "the file itself"));
    }
  }
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = fields.find(key);
    if (object == nullptr) {
      continue;
    }
    INGLE_ASSIGN_OR_RETURN(
        const Json* part, part_of(*object, place, origin + ": " + key));
    if (part != nullptr) {
      INGLE_RETURN_IF_ERROR(common.add_all(*part, key));
      where += where.empty() ? key : std::string(" and ") + key;
    }
  }
  where = where.empty() ? origin : origin + ": " + where;
  return common;
}

void read_llama3(FieldReader& fields, RopeConfig& rope) {
  rope.kind = RopeKind::kLlama3;
  rope.factor = fields.number("factor", kTiny, kHuge);
  rope.low_freq_factor =
      fields.optional_number("low_freq_factor", kTiny, kHuge).value_or(1);
  rope.high_freq_factor =
      fields.optional_number("high_freq_factor", kTiny, kHuge).value_or(4);
  rope.original_context =
      fields.optional_size("original_max_position_embeddings").value_or(8192);
}

// By how much YaRN sharpens attention over a context that is `factor` longer.
double yarn_amplitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

void read_yarn(FieldReader& fields, RopeConfig& rope) {
  rope.kind = RopeKind::kYarn;
  rope.factor = fields.number("factor", kTiny, kHuge);
  rope.original_context = fields.size("original_max_position_embeddings");
  const auto number = [&](const char* key, float usual) {
    return fields.optional_number(key, kTiny, kHuge).value_or(usual);
  };
  rope.beta_fast = number("beta_fast", 32);
  rope.beta_slow = number("beta_slow", 1);
  rope.truncate = fields.optional_bool("truncate").value_or(true);
  const auto scale = [&](const char* key, float usual) {
    return yarn_amplitude(
        rope.factor, fields.optional_number(key, 0, kHuge).value_or(usual));
  };
  rope.amplitude = fields.optional_number("attention_factor", kTiny, kHuge)
                       .value_or(static_cast<float>(
                           scale("mscale", 1) / scale("mscale_all_dim", 0)));
}

// The factors for short contexts are of no use: a context that grows would have
// to be read again.
Status read_long_rope(
    FieldReader& fields,
    const std::string& where,
    int context,
    RopeConfig& rope) {
  rope.kind = RopeKind::kLongRope;
  rope.original_context = fields.size("original_max_position_embeddings");
  const Json* factors = fields.find("long_factor");
  if (factors == nullptr || !factors->is_array()) {
    return Status::corruption(where + ": long_factor has to be a list");
  }
  for (const Json& factor : *factors) {
    const double value = factor.is_number() ? factor.get<double>() : 0;
    if (!(value >= kTiny && value <= kHuge)) {
      return Status::corruption(
          where + ": long_factor[" + std::to_string(rope.long_factors.size()) +
          "] has to be a positive number");
    }
    rope.long_factors.push_back(static_cast<float>(value));
  }
  const double original = rope.original_context;
  const double usual = context <= original
      ? 1
      : std::sqrt(1 + std::log(context / original) / std::log(original));
  rope.amplitude = fields.optional_number("attention_factor", kTiny, kHuge)
                       .value_or(static_cast<float>(usual));
  return Status::ok();
}

Status read_type(
    FieldReader& fields,
    const std::string& where,
    int context,
    const RopeDefaults& usual,
    RopeConfig& rope) {
  const std::string type =
      fields.optional_string("rope_type").value_or("default");
  if (type == "linear") {
    rope.kind = RopeKind::kLinear;
    rope.factor = fields.number("factor", kTiny, kHuge);
  } else if (type == "longrope") {
    return read_long_rope(fields, where, context, rope);
  } else if (usual.drops_other_types) {
    if (type != "default") {
      log_info(where + ": the type " + quote_name(type) + " is taken as none");
    }
  } else if (type == "llama3") {
    read_llama3(fields, rope);
  } else if (type == "yarn") {
    read_yarn(fields, rope);
  } else if (type == "proportional") {
    rope.kind = RopeKind::kProportional;
    rope.factor = fields.optional_number("factor", kTiny, kHuge).value_or(1);
  } else if (type != "default") {
    return Status::unsupported(
        where + ": the type " + quote_name(type) +
        " is not supported; these are: default, linear, llama3, longrope, "
        "proportional, yarn");
  }
  return Status::ok();
}

// What no formula of rope.cpp takes.
Status check_ranges(const RopeConfig& rope, const std::string& where) {
  if (rope.low_freq_factor >= rope.high_freq_factor) {
    return Status::corruption(
        where + ": low_freq_factor has to be below high_freq_factor");
  }
  if (rope.kind == RopeKind::kYarn && rope.theta <= 1) {
    return Status::corruption(
        where + ": with the type yarn rope_theta has to be above 1");
  }
  if (!std::isfinite(rope.amplitude)) {
    return Status::corruption(
        where + ": original_max_position_embeddings (" +
        std::to_string(rope.original_context) + ") is too small");
  }
  return Status::ok();
}

} // namespace

Result<RopeConfig> read_rope(
    FieldReader& fields,
    const std::string& origin,
    int context,
    const RopeDefaults& usual,
    const RopePlace& place) {
  RopeConfig rope;
  rope.traditional =
      fields.optional_bool("rope_traditional").value_or(usual.traditional);
  std::string where;
  INGLE_ASSIGN_OR_RETURN(
      const CommonFields common, gather(fields, origin, place, where));
  FieldReader reader(common.object(), where);
  rope.theta =
      reader.optional_number("rope_theta", kTiny, kHuge).value_or(usual.theta);
  rope.rotary_factor = reader.optional_number("partial_rotary_factor", 0, 1)
                           .value_or(usual.rotary_factor);
  INGLE_RETURN_IF_ERROR(read_type(reader, where, context, usual, rope));
  if (const auto beta =
          reader.optional_number("llama_4_scaling_beta", 0, kHuge)) {
    rope.query_beta = *beta;
    rope.original_context = reader.size("original_max_position_embeddings");
  }
  INGLE_RETURN_IF_ERROR(fields.status());
  INGLE_RETURN_IF_ERROR(reader.status());
  INGLE_RETURN_IF_ERROR(check_ranges(rope, where));
  return rope;
}

Status
check_rope(const RopeConfig& rope, int head_dim, const std::string& origin) {
  const int dims = rope.rotated_dims(head_dim);
  if (dims < 2 || dims % 2 != 0) {
    return Status::corruption(
        origin + ": partial_rotary_factor turns " + std::to_string(dims) +
        " of a head's " + std::to_string(head_dim) +
        " dimensions; it has to be an even number of them");
  }
  const size_t pairs = static_cast<size_t>(dims) / 2;
  if (rope.kind == RopeKind::kLongRope && rope.long_factors.size() != pairs) {
    return Status::corruption(
        origin + ": long_factor has " +
        std::to_string(rope.long_factors.size()) + " factors where " +
        std::to_string(dims) + " dimensions turn; it has to have " +
        std::to_string(pairs));
  }
  return Status::ok();
}

} // namespace ingle

// The part of layer_weights.h that is about gated delta nets.
#include <algorithm>
#include <array>
#include <iterator>

#include <mlx/ops.h>
#include <mlx/transforms.h>

#include "model/families/layer_weights.h"
#include "model/run_mlx.h"

namespace ingle {

bool has_taps_last(const WeightSource& weights, const std::string& name) {
  const auto shape = weights.shape_of(name);
  return shape && !shape->empty() && shape->back() != 1;
}

namespace {

// The convolution's, of a file of either kind: [taps, channels].
Result<mx::array> take_conv(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  const int channels = config.gated_delta.channels();
  const int taps = config.gated_delta.taps;
  const std::string name = path + "conv1d.weight";
  INGLE_ASSIGN_OR_RETURN(
      const mx::array conv,
      weights.take(
          name,
          has_taps_last(weights, name) ? mx::Shape{channels, 1, taps}
                                       : mx::Shape{channels, taps, 1}));
  return run_mlx("load", [&] {
    mx::array turned =
        mx::contiguous(mx::transpose(mx::reshape(conv, {channels, taps})));
    mx::eval(turned);
    return turned;
  });
}

// Of qkv, z, b and a, where one matrix has the rows of the first two and one
// those of the others: key head by key head, its part of each.
Result<std::vector<Linear>> take_fused_delta_projections(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  const GatedDeltaShape& shape = config.gated_delta;
  const int per_key = shape.value_heads / shape.key_heads;
  const int values = per_key * shape.value_dim;
  std::vector<RowRange> queries, keys, read, gates, betas, decays;
  for (int head = 0; head < shape.key_heads; ++head) {
    const int begin = head * 2 * (shape.key_dim + values);
    queries.push_back({begin, shape.key_dim});
    keys.push_back({begin + shape.key_dim, shape.key_dim});
    read.push_back({begin + 2 * shape.key_dim, values});
    gates.push_back({begin + 2 * shape.key_dim + values, values});
    betas.push_back({head * 2 * per_key, per_key});
    decays.push_back({head * 2 * per_key + per_key, per_key});
  }
  std::vector<RowRange> qkv = std::move(queries);
  qkv.insert(qkv.end(), keys.begin(), keys.end());
  qkv.insert(qkv.end(), read.begin(), read.end());
  INGLE_ASSIGN_OR_RETURN(
      auto projections,
      weights.take_linears(
          path + "in_proj_qkvz",
          config.hidden_size,
          shape.channels() + shape.value_width(),
          std::array{std::move(qkv), std::move(gates)},
          false));
  INGLE_ASSIGN_OR_RETURN(
      auto others,
      weights.take_linears(
          path + "in_proj_ba",
          config.hidden_size,
          2 * shape.value_heads,
          std::array{std::move(betas), std::move(decays)},
          false));
  std::ranges::move(others, std::back_inserter(projections));
  return projections;
}

// Of qkv, z, b and a.
Result<std::vector<Linear>> take_delta_projections(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& path) {
  if (config.fused_gated_delta) {
    return take_fused_delta_projections(config, weights, path);
  }
  const GatedDeltaShape& shape = config.gated_delta;
  std::vector<Linear> projections;
  for (const auto& [name, width] :
       {std::pair{"in_proj_qkv", shape.channels()},
        std::pair{"in_proj_z", shape.value_width()},
        std::pair{"in_proj_b", shape.value_heads},
        std::pair{"in_proj_a", shape.value_heads}}) {
    INGLE_ASSIGN_OR_RETURN(
        auto projection,
        weights.take_linear(path + name, config.hidden_size, width, false));
    projections.push_back(std::move(projection));
  }
  return projections;
}

} // namespace

Result<GatedDeltaWeights> take_gated_delta(
    const ModelConfig& config,
    WeightSource& weights,
    const std::string& layer) {
  const GatedDeltaShape& shape = config.gated_delta;
  const int hidden = config.hidden_size;
  const int heads = shape.value_heads;
  const std::string path = layer + ".linear_attn.";
  INGLE_ASSIGN_OR_RETURN(
      auto norm,
      take_norm(
          config,
          weights,
          layer + "." + config.norms.before_attention,
          hidden));
  INGLE_ASSIGN_OR_RETURN(
      auto in, take_delta_projections(config, weights, path));
  INGLE_ASSIGN_OR_RETURN(
      auto out,
      weights.take_linear(
          path + "out_proj", shape.value_width(), hidden, false));
  INGLE_ASSIGN_OR_RETURN(auto conv, take_conv(config, weights, path));
  INGLE_ASSIGN_OR_RETURN(auto decay_log, weights.take(path + "A_log", {heads}));
  INGLE_ASSIGN_OR_RETURN(
      auto decay_bias, weights.take(path + "dt_bias", {heads}));
  INGLE_ASSIGN_OR_RETURN(
      auto head_norm, weights.take(path + "norm.weight", {shape.value_dim}));
  INGLE_RETURN_IF_ERROR(run_mlx("load", [&] {
    decay_log = mx::exp(mx::astype(decay_log, mx::float32));
    decay_bias = mx::astype(decay_bias, mx::float32);
    mx::eval(decay_log, decay_bias);
  }));
  return GatedDeltaWeights{
      std::move(norm),
      std::move(in[0]),
      std::move(in[1]),
      std::move(in[2]),
      std::move(in[3]),
      std::move(out),
      std::move(conv),
      std::move(decay_log),
      std::move(decay_bias),
      std::move(head_norm)};
}

} // namespace ingle

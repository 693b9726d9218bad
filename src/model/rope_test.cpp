// Against mlx-lm's rotary embeddings.
#include "model/rope.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>
#include <nlohmann/json.hpp>

#include "base/file_system.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

// Golden values have six digits.
constexpr float kTolerance = 2e-5f;

// The configuration as config.json would give it.
RopeConfig config_of(const Json& golden) {
  const Json json = {
      {"model_type", "llama"},
      {"hidden_size", 16},
      {"intermediate_size", 16},
      {"num_hidden_layers", 1},
      {"num_attention_heads", 1},
      {"vocab_size", 16},
      {"max_position_embeddings", 8192},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", golden["rope_theta"]},
      {"rope_traditional", golden["rope_traditional"]},
      {"rope_scaling", golden["rope_scaling"]}};
  const auto config = parse_model_config(json.dump(), "config.json");
  EXPECT_TRUE(config.is_ok()) << config.status().message();
  return config->ropes.front();
}

TEST(Rope, EqualsTheOracle) {
  const auto text = make_posix_file_system()->read(
      std::string(INGLE_TEST_DATA) + "/rope.json");
  const Json golden = Json::parse(*text);
  const int dims = golden["shape"][3];
  const mx::array x = mx::reshape(
      mx::subtract(
          mx::divide(mx::arange(0, 96, 1, mx::float32), mx::array(48.0f)),
          mx::array(1.0f)),
      {1, 2, 3, dims});
  ASSERT_FALSE(golden["cases"].empty());
  for (const Json& expected : golden["cases"]) {
    SCOPED_TRACE(expected["rope_scaling"].dump());
    SCOPED_TRACE(expected["offset"].dump());
    const Rope rope(config_of(expected), dims);
    mx::array rotated =
        mx::contiguous(rope(x, expected["offset"].get<int64_t>()));
    mx::eval(rotated);
    for (size_t i = 0; i < rotated.size(); ++i) {
      ASSERT_NEAR(
          rotated.data<float>()[i],
          expected["values"][i].get<float>(),
          kTolerance)
          << i;
    }
  }
}

} // namespace
} // namespace ingle

// Against mlx-lm's rotary embeddings.
#include "model/rope.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>
#include <nlohmann/json.hpp>

#include "base/file_system.h"
#include "kernels/kernel_set.h"
#include "model/config.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

// Golden values have six digits, and reach 3.
constexpr float kTolerance = 4e-5f;

const Json& goldens() {
  static const auto* golden =
      new Json(Json::parse(*make_posix_file_system()->read(
          std::string(INGLE_TEST_DATA) + "/rope.json")));
  return *golden;
}

// The configuration as config.json would give it.
RopeConfig config_of(const Json& golden) {
  Json json = {
      {"model_type", "llama"},
      {"hidden_size", 16},
      {"intermediate_size", 16},
      {"num_hidden_layers", 1},
      {"num_attention_heads", 1},
      {"vocab_size", 16},
      {"max_position_embeddings", goldens()["max_position_embeddings"]},
      {"rms_norm_eps", 1e-5}};
  for (const char* field :
       {"rope_theta",
        "rope_traditional",
        "partial_rotary_factor",
        "rope_scaling"}) {
    json[field] = golden[field];
  }
  const auto config = parse_model_config(json.dump(), "config.json");
  EXPECT_TRUE(config.is_ok()) << config.status().message();
  return config->ropes.front();
}

// [1, 2, 3, 16], as the golden's script has it.
mx::array inputs() {
  mx::array x = mx::reshape(
      mx::subtract(
          mx::divide(mx::arange(0, 96, 1, mx::float32), mx::array(48.0f)),
          mx::array(1.0f)),
      {1, 2, 3, 16});
  mx::eval(x);
  return x;
}

std::vector<float> values_of(const mx::array& x) {
  mx::array whole = mx::contiguous(x);
  mx::eval(whole);
  return {whole.data<float>(), whole.data<float>() + whole.size()};
}

// As attention on the kernels does it.
std::vector<float>
rotated_by_kernels(const Rope& rope, std::vector<float> heads, int64_t offset) {
  constexpr size_t kHeadDim = 16;
  constexpr size_t kLength = 3;
  for (size_t i = 0; i < heads.size() / kHeadDim; ++i) {
    std::vector<float> cosines;
    std::vector<float> sines;
    rope.add_angles(offset + static_cast<int64_t>(i % kLength), cosines, sines);
    kernel_set(Isa::kPortable)
        .rotate(
            heads.data() + i * kHeadDim,
            cosines.data(),
            sines.data(),
            rope.dims(),
            rope.is_traditional());
  }
  return heads;
}

void expect_near(const std::vector<float>& values, const Json& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i].get<float>(), kTolerance) << i;
  }
}

// Acceptance 205.
TEST(Rope, rope_goldens) {
  const mx::array x = inputs();
  ASSERT_FALSE(goldens()["cases"].empty());
  for (const Json& golden : goldens()["cases"]) {
    SCOPED_TRACE(golden["rope_scaling"].dump());
    SCOPED_TRACE(golden["partial_rotary_factor"].dump());
    const auto offset = golden["offset"].get<int64_t>();
    const Rope rope(config_of(golden), 16);
    expect_near(values_of(rope(x, offset)), golden["values"]);
    expect_near(
        rotated_by_kernels(rope, values_of(x), offset), golden["values"]);
  }
}

// Acceptance 60: the score of a turned query and a turned key is that of
// their distance, wherever both stand.
TEST(Rope, rope_positions_agree) {
  const auto head = [](int seed) {
    const mx::array x = mx::sin(mx::multiply(
        mx::arange(1, 17, 1, mx::float32),
        mx::array(static_cast<float>(seed))));
    return mx::reshape(x, {1, 1, 1, 16});
  };
  for (const Json& golden : goldens()["cases"]) {
    SCOPED_TRACE(golden["rope_scaling"].dump());
    const Rope rope(config_of(golden), 16);
    const auto score = [&](int64_t query, int64_t key) {
      return mx::sum(mx::multiply(rope(head(3), query), rope(head(5), key)))
          .item<float>();
    };
    for (const int distance : {0, 1, 7, 40}) {
      const float expected = score(distance, 0);
      for (const int64_t key : {1, 30, 300}) {
        EXPECT_NEAR(score(key + distance, key), expected, 2e-3)
            << distance << " at " << key;
      }
    }
  }
}

// Acceptance 202. The pairs are (i, i + 8); the first two turn.
TEST(Rope, proportional_rope_inf_tail) {
  RopeConfig config;
  config.kind = RopeKind::kProportional;
  config.rotary_factor = 0.25f;
  const Rope rope(config, 16);
  EXPECT_EQ(rope.dims(), 16);
  const std::vector<float> x = values_of(inputs());
  for (const int64_t offset : {7, 100000}) {
    const std::vector<float> rotated = values_of(rope(inputs(), offset));
    const std::vector<float> by_kernels = rotated_by_kernels(rope, x, offset);
    for (size_t i = 0; i < x.size(); ++i) {
      if (i % 8 < 2) {
        EXPECT_NE(rotated[i], x[i]) << i;
        EXPECT_NE(by_kernels[i], x[i]) << i;
      } else {
        EXPECT_EQ(rotated[i], x[i]) << i;
        EXPECT_EQ(by_kernels[i], x[i]) << i;
      }
    }
  }
}

// The divisor of the exponents is the head's width, not that of what turns.
TEST(Rope, ProportionalRopeTurnsAsTheFirstPairsOfAWholeHead) {
  RopeConfig config;
  const Rope whole(config, 16);
  config.kind = RopeKind::kProportional;
  config.rotary_factor = 0.25f;
  const Rope part(config, 16);
  std::vector<float> cosines[2];
  std::vector<float> sines[2];
  whole.add_angles(9, cosines[0], sines[0]);
  part.add_angles(9, cosines[1], sines[1]);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(cosines[1][i], i < 2 ? cosines[0][i] : 1, 1e-6) << i;
    EXPECT_NEAR(sines[1][i], i < 2 ? sines[0][i] : 0, 1e-6) << i;
  }
}

} // namespace
} // namespace ingle

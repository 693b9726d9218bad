#include "model/rope_fields.h"

#include <cmath>

#include <gtest/gtest.h>

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr int kContext = 4096;
constexpr RopePlace kSliding = {.layers = "sliding_attention"};

Result<RopeConfig> read(
    const Json& json,
    const RopePlace& place = {},
    const RopeDefaults& usual = {}) {
  FieldReader fields(json, "m/config.json");
  return read_rope(fields, "m/config.json", kContext, usual, place);
}

RopeConfig read_well(
    const Json& json,
    const RopePlace& place = {},
    const RopeDefaults& usual = {}) {
  const auto rope = read(json, place, usual);
  EXPECT_TRUE(rope.is_ok()) << rope.status().message();
  return rope.is_ok() ? *rope : RopeConfig{};
}

Json yarn() {
  return {
      {"rope_type", "yarn"},
      {"factor", 8},
      {"original_max_position_embeddings", 512}};
}

TEST(RopeFields, EachPlaceAndSpellingSaysTheSame) {
  const Json linear = {{"rope_type", "linear"}, {"factor", 8}};
  const RopeConfig expected =
      read_well({{"rope_theta", 5e5}, {"rope_scaling", linear}});
  EXPECT_EQ(expected.kind, RopeKind::kLinear);
  EXPECT_EQ(expected.factor, 8);
  EXPECT_EQ(expected.theta, 5e5f);
  Json with_theta = linear;
  with_theta["rope_theta"] = 5e5;
  const Json older = {{"type", "linear"}, {"factor", 8.0}};
  const Json for_each = {
      {"full_attention", with_theta},
      {"sliding_attention", {{"rope_theta", 2e4}}}};
  for (const Json& same :
       {Json{{"rope_parameters", with_theta}},
        Json{{"rope_theta", 500000}, {"rope_scaling", older}},
        Json{{"rope_parameters", for_each}},
        Json{
            {"rope_theta", 5e5},
            {"rope_scaling", older},
            {"rope_parameters", with_theta}},
        Json{{"rope_scaling", linear}, {"rope_parameters", for_each}}}) {
    EXPECT_EQ(read_well(same), expected) << same;
  }
  EXPECT_EQ(read_well({{"rope_parameters", for_each}}, kSliding).theta, 2e4f);
}

TEST(RopeFields, FieldsBesideKindsOfLayersMaySayNothing) {
  const Json kinds = {
      {"full_attention", yarn()}, {"sliding_attention", {{"rope_theta", 2e4}}}};
  const Json same = {{"rope_parameters", kinds}};
  for (const char* type : {"rope_type", "type"}) {
    Json more = same;
    more["rope_parameters"].update(
        {{type, "default"}, {"rope_theta", nullptr}, {"factor", nullptr}});
    EXPECT_EQ(read_well(more), read_well(same));
    EXPECT_EQ(read_well(more, kSliding), read_well(same, kSliding));
    more["rope_parameters"][type] = "linear";
    EXPECT_EQ(read(more).status().code(), StatusCode::kCorruption);
  }
}

TEST(RopeFields, WhatIsSaidOfAllLayersIsSaidOfEachKind) {
  const Json json = {{"rope_theta", 5e5}, {"rope_scaling", yarn()}};
  EXPECT_EQ(read_well(json, kSliding), read_well(json));
  RopePlace own = kSliding;
  own.takes_common = false;
  EXPECT_EQ(read_well(json, own).kind, RopeKind::kDefault);
  EXPECT_EQ(read_well(json, own).theta, 5e5f);
  own.theta = "rope_local_base_freq";
  EXPECT_EQ(read_well(json, own).theta, 1e4f);
}

TEST(RopeFields, PlacesThatContradictEachOtherAreRefusedInOneLine) {
  const std::pair<const char*, Json> bad[] = {
      {"'factor'",
       {{"rope_scaling", {{"type", "linear"}, {"factor", 8}}},
        {"rope_parameters", {{"rope_type", "linear"}, {"factor", 4}}}}},
      {"'rope_type'",
       {{"rope_scaling", yarn()},
        {"rope_parameters", {{"rope_type", "default"}}}}},
      {"'rope_type'",
       {{"rope_scaling", {{"type", "yarn"}, {"rope_type", "linear"}}}}},
      {"'rope_theta'",
       {{"rope_theta", 1e4}, {"rope_parameters", {{"rope_theta", 1e6}}}}},
      {"'partial_rotary_factor'",
       {{"partial_rotary_factor", 0.5},
        {"rope_parameters", {{"partial_rotary_factor", 0.25}}}}},
      {"'original_max_position_embeddings'",
       {{"original_max_position_embeddings", 4096}, {"rope_scaling", yarn()}}},
      {"not both",
       {{"rope_parameters",
         {{"rope_theta", 1e4}, {"full_attention", yarn()}}}}}};
  for (const auto& [what, json] : bad) {
    const Status status = read(json).status();
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << json;
    EXPECT_NE(status.message().find(what), std::string::npos)
        << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_EQ(status.message().find("m/config.json"), 0u);
  }
}

TEST(RopeFields, YarnSharpensAsItsPaperSays) {
  EXPECT_NEAR(
      read_well({{"rope_scaling", yarn()}}).amplitude, 1.2079442f, 1e-6f);
  Json scaling = yarn();
  scaling["mscale"] = 1.0;
  scaling["mscale_all_dim"] = 1.0;
  EXPECT_EQ(read_well({{"rope_scaling", scaling}}).amplitude, 1);
  scaling["attention_factor"] = 1.5;
  EXPECT_EQ(read_well({{"rope_scaling", scaling}}).amplitude, 1.5f);
}

TEST(RopeFields, LongRopeIsScaledByHowMuchTheContextGrew) {
  const Json scaling = {
      {"type", "su"},
      {"long_factor", {1, 2}},
      {"short_factor", {1, 1}},
      {"original_max_position_embeddings", 64}};
  const RopeConfig rope = read_well({{"rope_scaling", scaling}});
  EXPECT_EQ(rope.kind, RopeKind::kLongRope);
  EXPECT_EQ(rope.long_factors, (std::vector<float>{1, 2}));
  EXPECT_FLOAT_EQ(rope.amplitude, std::sqrt(2.0f)); // 4096 is 64 * 64
  Json as_long = scaling;
  as_long["original_max_position_embeddings"] = kContext;
  EXPECT_EQ(read_well({{"rope_scaling", as_long}}).amplitude, 1);
  // Phi's files have it beside the other fields.
  Json apart = scaling;
  apart.erase("original_max_position_embeddings");
  EXPECT_EQ(
      read_well(
          {{"original_max_position_embeddings", 64}, {"rope_scaling", apart}}),
      rope);
}

TEST(RopeFields, TypesThatAFamilyDropsAreNone) {
  RopeDefaults usual;
  usual.drops_other_types = true;
  const Json json = {{"rope_scaling", {{"type", "yarn"}}}};
  EXPECT_EQ(read_well(json, {}, usual), RopeConfig{});
  EXPECT_EQ(read(json).status().code(), StatusCode::kCorruption);
  EXPECT_EQ(
      read({{"rope_scaling", {{"type", "dynamic"}}}}).status().code(),
      StatusCode::kUnsupported);
}

TEST(RopeFields, FieldsThatNoFormulaTakesAreRefused) {
  Json beta = yarn();
  beta["beta_fast"] = 0;
  Json flat = yarn();
  flat["rope_theta"] = 1;
  Json without = yarn();
  without.erase("original_max_position_embeddings");
  const Json one_token = {
      {"type", "longrope"},
      {"long_factor", {1, 1}},
      {"original_max_position_embeddings", 1}};
  Json no_list = one_token;
  no_list["long_factor"] = 2;
  Json no_number = one_token;
  no_number["long_factor"] = {1, "2"};
  for (const Json& scaling :
       {beta,
        flat,
        without,
        one_token,
        no_list,
        no_number,
        Json("yarn"),
        Json{{"rope_type", 4}},
        Json{{"full_attention", 4}},
        Json{{"partial_rotary_factor", 1.5}},
        Json{{"rope_type", "proportional"}, {"factor", 0}},
        Json{{"llama_4_scaling_beta", 0.1}}}) {
    const Status status = read({{"rope_scaling", scaling}}).status();
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << scaling;
    EXPECT_NE(status.message().find("rope_scaling"), std::string::npos)
        << status.message();
  }
}

TEST(RopeFields, WhatTurnsHasToBePairsOfAHead) {
  RopeConfig rope;
  EXPECT_TRUE(check_rope(rope, 64, "m").is_ok());
  for (const float share : {0.0f, 0.01f, 0.3f}) { // 0, 0 and 19 of 64
    rope.rotary_factor = share;
    EXPECT_EQ(check_rope(rope, 64, "m").code(), StatusCode::kCorruption);
  }
  rope.rotary_factor = 0.5f;
  rope.kind = RopeKind::kLongRope;
  rope.long_factors.assign(15, 1.0f);
  EXPECT_EQ(check_rope(rope, 64, "m").code(), StatusCode::kCorruption);
  rope.long_factors.assign(16, 1.0f);
  EXPECT_TRUE(check_rope(rope, 64, "m").is_ok());
}

} // namespace
} // namespace ingle

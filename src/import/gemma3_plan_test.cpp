#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import_model.h"
#include "import/model_plan.h"
#include "import/testing/gguf_builder.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kOrigin = "m.gguf";

json config_of(const GgufBuilder& builder) {
  const std::string bytes = builder.build();
  const auto file = GgufFile::parse(as_bytes(bytes), kOrigin);
  const auto plan = plan_model(*file);
  EXPECT_TRUE(plan.is_ok()) << plan.status().message();
  return plan.is_ok() ? json(plan->config) : json();
}

std::string problem(const GgufBuilder& builder) {
  const std::string bytes = builder.build();
  const auto file = GgufFile::parse(as_bytes(bytes), kOrigin);
  const Status status = plan_model(*file).status();
  EXPECT_FALSE(status.is_ok());
  EXPECT_TRUE(status.message().starts_with("m.gguf: "));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status.message();
}

GgufBuilder tiny() {
  return tiny_gemma3(GgmlType::kF32, 32, 2);
}

TEST(Gemma3Plan, ConfigSaysAlsoWhatTheFileDoesNot) {
  EXPECT_EQ(config_of(tiny()), json::parse(R"({
    "model_type": "gemma3_text",
    "architectures": ["Gemma3ForCausalLM"],
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "attention_bias": false,
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 16,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
    "sliding_window": 8,
    "sliding_window_pattern": 6,
    "max_position_embeddings": 128,
    "vocab_size": 5,
    "tie_word_embeddings": true
  })"));
}

TEST(Gemma3Plan, WhatTheFileSaysStandsOverWhatIsUsual) {
  GgufBuilder builder = tiny();
  builder.set("gemma3.attention.sliding_window_pattern", 3u);
  builder.set("gemma3.rope.freq_base", 500000.0f);
  builder.set("gemma3.rope.freq_base_swa", 20000.0f);
  builder.set("gemma3.rope.scaling.type", "linear");
  builder.set("gemma3.rope.scaling.factor", 8.0f);
  builder.add_tensor("output.weight", {5, 32}, GgmlType::kF32);
  const json config = config_of(builder);
  EXPECT_EQ(config["sliding_window_pattern"], 3);
  EXPECT_EQ(config["rope_theta"], 500000.0);
  EXPECT_EQ(config["rope_local_base_freq"], 20000.0);
  EXPECT_EQ(
      config["rope_scaling"],
      json::parse(R"({"rope_type":"linear","factor":8.0})"));
  EXPECT_EQ(config["tie_word_embeddings"], false);
}

TEST(Gemma3Plan, TheLargestModelScalesByHiddenSizeOverHeads) {
  const json config = config_of(tiny_gemma3(GgmlType::kF32, 32, 62));
  EXPECT_EQ(config["query_pre_attn_scalar"], 8);
}

TEST(Gemma3Plan, EveryTensorHasItsModuleAndItsRowsStay) {
  const std::string bytes = tiny().build();
  const auto file = GgufFile::parse(as_bytes(bytes), kOrigin);
  const auto plan = plan_model(*file);
  ASSERT_TRUE(plan.is_ok()) << plan.status().message();
  std::map<std::string, std::string> modules;
  for (const TensorPlan& tensor : plan->tensors) {
    modules[tensor.source->name] = tensor.module;
    EXPECT_EQ(tensor.interleaved_heads, 0) << tensor.module;
    EXPECT_EQ(tensor.is_one_plus, !tensor.is_matrix) << tensor.module;
  }
  EXPECT_EQ(modules.size(), 2u + 2 * 13);
  const std::map<std::string, std::string> some = {
      {"token_embd.weight", "model.embed_tokens"},
      {"output_norm.weight", "model.norm"},
      {"blk.1.attn_norm.weight", "model.layers.1.input_layernorm"},
      {"blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj"},
      {"blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj"},
      {"blk.1.attn_v.weight", "model.layers.1.self_attn.v_proj"},
      {"blk.1.attn_q_norm.weight", "model.layers.1.self_attn.q_norm"},
      {"blk.1.attn_k_norm.weight", "model.layers.1.self_attn.k_norm"},
      {"blk.1.attn_output.weight", "model.layers.1.self_attn.o_proj"},
      {"blk.1.post_attention_norm.weight",
       "model.layers.1.post_attention_layernorm"},
      {"blk.1.ffn_norm.weight", "model.layers.1.pre_feedforward_layernorm"},
      {"blk.1.ffn_gate.weight", "model.layers.1.mlp.gate_proj"},
      {"blk.1.ffn_up.weight", "model.layers.1.mlp.up_proj"},
      {"blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj"},
      {"blk.1.post_ffw_norm.weight",
       "model.layers.1.post_feedforward_layernorm"}};
  for (const auto& [gguf_name, module] : some) {
    EXPECT_EQ(modules[gguf_name], module);
  }
}

TEST(Gemma3Plan, EveryTensorIsMissed) {
  const size_t count = tiny().tensors().size();
  for (size_t i = 0; i < count; ++i) {
    GgufBuilder builder = tiny();
    const std::string name = builder.tensors()[i].name;
    builder.tensors().erase(
        builder.tensors().begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THAT(problem(builder), HasSubstr("'" + name + "' is missing"));
  }
}

TEST(Gemma3Plan, WhatCannotRunIsRefused) {
  const auto with = [](const char* key, auto value) {
    GgufBuilder builder = tiny();
    builder.set(key, value);
    return problem(builder);
  };
  EXPECT_THAT(
      with("gemma3.final_logit_softcapping", 30.0f),
      HasSubstr("'gemma3.final_logit_softcapping' caps its logits"));
  EXPECT_THAT(
      with(
          "gemma3.attention.sliding_window_pattern",
          std::vector<int32_t>{1, 0}),
      HasSubstr("sliding_window_pattern' is a list"));
  EXPECT_THAT(
      with("gemma3.attention.sliding_window_pattern", 0u),
      HasSubstr("sliding_window_pattern' is 0"));
  EXPECT_THAT(
      with("gemma3.rope.freq_base_swa", std::nanf("")),
      HasSubstr("local rope base is out of range"));
  EXPECT_THAT(with("gemma3.rope.scaling.type", "yarn"), HasSubstr("'yarn'"));
  EXPECT_THAT(with("gemma3.expert_count", 8u), HasSubstr("mixture of 8"));
  GgufBuilder builder = tiny();
  builder.add_tensor("rope_freqs.weight", {8}, GgmlType::kF32);
  EXPECT_THAT(problem(builder), HasSubstr("'rope_freqs.weight' is not one"));
  builder = tiny();
  builder.erase("gemma3.attention.sliding_window");
  EXPECT_THAT(problem(builder), HasSubstr("sliding_window' is missing"));
}

// The file holds 1 + the weight, in whatever type.
TEST(Gemma3Import, NormsLoseTheirOne) {
  const auto fs = make_memory_file_system();
  ASSERT_TRUE(fs->create_directory("/in").is_ok());
  GgufBuilder builder = tiny();
  auto& single = builder.tensor("blk.0.attn_norm.weight");
  auto& half = builder.tensor("blk.0.ffn_norm.weight");
  const float value = 1.25f;
  std::memcpy(single.bytes.data(), &value, sizeof value);
  half.type = GgmlType::kF16;
  half.bytes = random_blocks(GgmlType::kF16, 32, 1);
  half.bytes[0] = '\x00';
  half.bytes[1] = '\x42'; // 3
  const std::string bytes = builder.build();
  ASSERT_TRUE(write_file(*fs, "/in/m.gguf", as_bytes(bytes)).is_ok());
  const auto report = import_gguf(*fs, "/in/m.gguf", "/out");
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  const auto folder = WeightFolder::open(*fs, "/out");
  ASSERT_TRUE(folder.is_ok());
  const auto first = [&](const std::string& name) {
    const TensorView& tensor = (*folder)->tensors().at(name);
    EXPECT_EQ(tensor.type, TensorType::kF32);
    float stored;
    std::memcpy(&stored, tensor.bytes.data(), sizeof stored);
    return stored;
  };
  EXPECT_EQ(first("model.layers.0.input_layernorm.weight"), 0.25f);
  EXPECT_EQ(first("model.layers.0.pre_feedforward_layernorm.weight"), 2.0f);
}

} // namespace
} // namespace ingle

#include "model/memory_plan.h"

#include <gtest/gtest.h>
#include <mlx/memory.h>
#include <nlohmann/json.hpp>

#include "cache/block_kv_cache.h"
#include "model/load_model.h"
#include "model/make_kv_state.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

constexpr int kChunk = 64;

class MemoryPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_tiny_llama(*fs, "/tiny", {.quantised = true}).is_ok());
    set("max_position_embeddings", 100'000);
  }
  void set(const std::string& field, const Json& value) {
    Json config = Json::parse(*fs->read("/tiny/config.json"));
    config[field] = value;
    ASSERT_TRUE(
        write_file(*fs, "/tiny/config.json", as_bytes(config.dump())).is_ok());
  }
  // All layers see so many positions.
  void set_window(int window) {
    set("layer_types",
        Json::array(
            {"sliding_attention", "sliding_attention", "sliding_attention"}));
    set("sliding_window", window);
  }
  // Half as many heads, of 32: as many as a group of few bits has.
  void set_wide_heads() {
    set("head_dim", 32);
    set("num_attention_heads", 2);
    set("num_key_value_heads", 1);
  }
  MemoryPlan plan(const RunOptions& options) {
    auto made = MemoryPlan::of(*fs, "/tiny", options, kChunk);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return std::move(made).value();
  }

  const std::unique_ptr<FileSystem> fs = make_memory_file_system();
  const RunOptions near{.numerics = Numerics::kNear};
  const RunOptions exact{.numerics = Numerics::kExact};
};

TEST_F(MemoryPlanTest, WeightsAreWhatTheLoadedModelHolds) {
  for (const RunOptions& options : {near, exact}) {
    const auto planned = static_cast<double>(plan(options).at(1).weights);
    mx::clear_cache(); // buffers that are given again are larger than asked for
    const size_t before = mx::get_active_memory();
    const auto model = load_model(*fs, "/tiny", options);
    ASSERT_TRUE(model.is_ok());
    const auto held = static_cast<double>((*model)->weight_bytes() - before);
    EXPECT_NEAR(planned / held, 1, 0.05);
  }
}

TEST_F(MemoryPlanTest, CacheIsWhatASequenceReserves) {
  const RunOptions four{
      .numerics = Numerics::kNear,
      .kv_quant = KvQuant::kUniform,
      .kv = {4, 32}};
  set_wide_heads();
  for (const int window : {0, 300}) {
    if (window > 0) {
      set_window(window);
    }
    for (const RunOptions& options : {near, exact, four}) {
      const MemoryPlan made = plan(options);
      for (const int64_t length : {1, 300, 2000}) {
        const auto kv = kv_quantizations(*fs, "/tiny", made.config(), options);
        KvState state = make_kv_state(
            made.config(), *kv, mx::float32, uses_kernels(options.numerics));
        state.reserve(length);
        const double most = window == 0 ? 1 : 1.5; // a window's may yet grow
        EXPECT_GE(made.at(length).kv, state.bytes());
        EXPECT_LE(
            static_cast<double>(made.at(length).kv),
            most * static_cast<double>(state.bytes()));
      }
    }
  }
}

// Read in pieces, also in such that are longer than the window.
TEST_F(MemoryPlanTest, CacheThatIsReadIntoTakesNoMore) {
  for (const int window : {20, 300, 700}) {
    set_window(window);
    const MemoryPlan made = plan(near);
    const auto kv = kv_quantizations(*fs, "/tiny", made.config(), near);
    KvState state = make_kv_state(made.config(), *kv, mx::float32, true);
    const int64_t length = 3000;
    state.reserve(length);
    size_t most = state.bytes();
    for (int64_t read = 0; read < length; read += kChunk) {
      for (size_t i = 0; i < made.config().layers.size(); ++i) {
        static_cast<BlockKvCache&>(state.layer(i)).extend(kChunk);
      }
      ASSERT_TRUE(state.commit().is_ok());
      most = std::max(most, state.bytes());
    }
    EXPECT_GE(made.at(length).kv, most) << window;
    EXPECT_LE(made.at(length).kv, 2 * most) << window;
  }
}

// Acceptance 209.
TEST_F(MemoryPlanTest, fit_sliding_saturates) {
  const MemoryPlan all = plan(near);
  set_window(512);
  const MemoryPlan window = plan(near);
  EXPECT_EQ(window.at(256).kv, all.at(256).kv);
  EXPECT_LT(window.at(4096).kv, all.at(4096).kv);
  EXPECT_EQ(window.at(100'000).kv, window.at(4096).kv);
  // No layer sees all: the context is the model's, whatever is left.
  EXPECT_EQ(window.max_context(window.at(4096).total()), 100'000);
}

TEST_F(MemoryPlanTest, max_context_monotone_in_budget) {
  const MemoryPlan made = plan(near);
  const uint64_t least = made.at(1).total();
  EXPECT_EQ(made.max_context(0), 0);
  EXPECT_EQ(made.max_context(least - 1), 0);
  EXPECT_GE(made.max_context(least), 1);
  int64_t before = 0;
  for (uint64_t budget = least; budget < 2 * least; budget += least / 50) {
    const int64_t context = made.max_context(budget);
    EXPECT_GE(context, before);
    EXPECT_LE(made.at(context).total(), budget);
    before = context;
  }
  EXPECT_EQ(made.max_context(~uint64_t{0}), 100'000);
}

TEST_F(MemoryPlanTest, FewerBitsMakeRoomForMore) {
  set_wide_heads();
  const MemoryPlan full = plan(near);
  const MemoryPlan eight = plan(
      {.numerics = Numerics::kNear,
       .kv_quant = KvQuant::kUniform,
       .kv = {8, 32}});
  EXPECT_LT(eight.at(4096).kv, full.at(4096).kv * 3 / 4);
  const uint64_t budget = full.at(2000).total();
  EXPECT_GT(eight.max_context(budget), full.max_context(budget));
}

TEST_F(MemoryPlanTest, FolderThatCannotBeLoadedIsAnError) {
  EXPECT_EQ(
      MemoryPlan::of(*fs, "/nowhere", near, kChunk).status().code(),
      StatusCode::kNotFound);
  set("model_type", "t5");
  EXPECT_EQ(
      MemoryPlan::of(*fs, "/tiny", near, kChunk).status().code(),
      StatusCode::kUnsupported);
}

// The weights themselves are not read for that.
TEST_F(MemoryPlanTest, ConfigThatLiesAboutAShapeIsAnError) {
  set("intermediate_size", 256);
  const Status status = MemoryPlan::of(*fs, "/tiny", near, kChunk).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(status.message().find("gate_proj"), std::string::npos)
      << status.message();
  set("intermediate_size", 128);
  set("num_hidden_layers", 2);
  const Status leftovers = MemoryPlan::of(*fs, "/tiny", near, kChunk).status();
  EXPECT_NE(leftovers.message().find("model.layers.2."), std::string::npos)
      << leftovers.message();
}

} // namespace
} // namespace ingle

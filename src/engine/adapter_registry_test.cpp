// Adapters by id, alone and in an engine that generates meanwhile.
#include "engine/adapter_registry.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/testing/recording_sink.h"
#include "model/load_model.h"
#include "model/testing/tiny_adapter.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

using testing::HasSubstr;

class AdapterRegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        write_tiny_llama(*fs_, "/tiny", {.quantised = true, .tokenizer = true})
            .is_ok());
    put("/store/a", 4, 2);
    put("/store/b", 3, 1);
    put("/elsewhere/c", 2, 1);
  }
  void put(const std::string& folder, int rank, float scale) {
    const Status written =
        write_tiny_adapter(*fs_, folder, tiny_llama_adapter(rank, scale));
    ASSERT_TRUE(written.is_ok()) << written.message();
  }

  const std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

// Without an engine.
class RegistryTest : public AdapterRegistryTest {
 protected:
  void SetUp() override {
    AdapterRegistryTest::SetUp();
    const auto model =
        load_model(*fs_, "/tiny", {.numerics = Numerics::kExact, .threads = 1});
    ASSERT_TRUE(model.is_ok());
    layout_ = (*model)->adapter_layout();
    start({.stores = {"/nothing", "/store"}, .mounted = {}});
  }
  void start(AdapterOptions options) {
    auto made =
        AdapterRegistry::make(*fs_, std::move(options), "owner/Tiny", layout_);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    registry_ = *std::move(made);
  }
  std::string key_of(const std::optional<std::string>& wanted) {
    const auto chosen = registry_->choose(wanted);
    EXPECT_TRUE(chosen.is_ok()) << chosen.status().message();
    return *chosen == nullptr ? "" : (*chosen)->key();
  }

  std::shared_ptr<const AdapterLayout> layout_;
  std::shared_ptr<AdapterRegistry> registry_;
};

TEST_F(RegistryTest, mount_reports_layers) {
  const auto mounted = registry_->mount("one", "a");
  ASSERT_TRUE(mounted.is_ok()) << mounted.status().message();
  EXPECT_EQ(mounted->id, "one");
  EXPECT_EQ(mounted->path, "/store/a");
  EXPECT_EQ(mounted->modules, 21);
  EXPECT_EQ(mounted->rank, 4);
  EXPECT_EQ(mounted->scale, 2);
  EXPECT_GT(mounted->bytes, 0u);
  ASSERT_EQ(registry_->mounted().size(), 1u);
  EXPECT_EQ(registry_->mounted()[0].id, "one");
}

TEST_F(RegistryTest, unmount_frees_and_404) {
  ASSERT_TRUE(registry_->mount("a", "/store/a").is_ok());
  const auto chosen = *registry_->choose("a");
  EXPECT_EQ(registry_->unmount("a")->modules, 21);
  EXPECT_EQ(registry_->unmount("a").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(
      registry_->choose("a").status().code(), StatusCode::kInvalidRequest);
  EXPECT_TRUE(registry_->mounted().empty());
  // Who runs with it has the only one.
  EXPECT_EQ(chosen.use_count(), 1);
}

TEST_F(RegistryTest, RemountOfTheSameIsNoOpAndOfOthersReplaces) {
  ASSERT_TRUE(registry_->mount("a", "a").is_ok());
  const std::string key = key_of("a");
  put("/store/copy", 4, 2);
  EXPECT_EQ(registry_->mount("a", "copy")->path, "/store/a");
  EXPECT_EQ(key_of("a"), key);
  put("/store/a", 2, 2);
  EXPECT_EQ(registry_->mount("a", "a")->rank, 2);
  EXPECT_NE(key_of("a"), key);
}

TEST_F(RegistryTest, BadAdapterLeavesWhatWasMounted) {
  ASSERT_TRUE(registry_->mount("a", "a").is_ok());
  const std::string key = key_of("a");
  ASSERT_TRUE(write_file(*fs_, "/store/b/adapters.safetensors", as_bytes("no"))
                  .is_ok());
  const Status failed = registry_->mount("a", "b").status();
  EXPECT_EQ(failed.code(), StatusCode::kInvalidRequest);
  EXPECT_EQ(failed.where(), "path");
  EXPECT_EQ(key_of("a"), key);
}

TEST_F(RegistryTest, PathsLeadOnlyIntoStores) {
  for (const std::string path :
       {"/elsewhere/c",
        "/store/../elsewhere/c",
        "../elsewhere/c",
        "/store/",
        "/store",
        "/store/.",
        ".",
        "/storehouse",
        "none",
        "/store/a/../../elsewhere/c"}) {
    const Status refused = registry_->mount("a", path).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidRequest) << path;
    EXPECT_THAT(
        refused.message(), HasSubstr("no adapter's folder below /nothing"))
        << path;
  }
  EXPECT_TRUE(registry_->mounted().empty());
  EXPECT_TRUE(registry_->mount("a", "a").is_ok());
}

TEST_F(RegistryTest, IdsAreNotWhatRequestsSpellOtherwise) {
  for (const std::string& id : std::vector<std::string>{
           "",
           "a+b",
           "a,b",
           "none",
           "a/b",
           "a b",
           "a\n",
           std::string(129, 'x')}) {
    const Status refused = registry_->mount(id, "a").status();
    EXPECT_EQ(refused.where(), "id") << id;
  }
}

TEST_F(RegistryTest, unknown_adapter_400) {
  ASSERT_TRUE(registry_->mount("a", "a").is_ok());
  for (const std::string wanted : {"b", "", "a+b", "a,", "+a", "a+none"}) {
    const Status refused = registry_->choose(wanted).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidRequest) << wanted;
    EXPECT_EQ(refused.where(), "adapter") << wanted;
  }
}

TEST_F(RegistryTest, SeveralAreTakenInTheirOrder) {
  ASSERT_TRUE(registry_->mount("a", "a").is_ok());
  ASSERT_TRUE(registry_->mount("b", "b").is_ok());
  EXPECT_EQ(key_of("a+b"), key_of("a") + key_of("b"));
  EXPECT_EQ(key_of("b,a"), key_of("b") + key_of("a"));
}

TEST_F(RegistryTest, default_adapter_applied) {
  EXPECT_EQ(key_of(std::nullopt), "");
  start({.stores = {}, .mounted = {{"c", "/elsewhere/c"}, {"a", "/store/a"}}});
  EXPECT_EQ(key_of(std::nullopt), key_of("c+a"));
  EXPECT_EQ(key_of("none"), "");
  EXPECT_EQ(key_of("a"), key_of("a+a").substr(0, 16));
  ASSERT_TRUE(registry_->unmount("c").is_ok());
  EXPECT_EQ(key_of(std::nullopt), key_of("a"));
}

TEST_F(RegistryTest, AvailableAreThoseForThisModel) {
  const auto put_for = [&](const std::string& name, const std::string& base) {
    TinyAdapter tiny = tiny_llama_adapter(8, 1);
    tiny.config_json =
        R"({"r": 8, "lora_alpha": 4, "base_model_name_or_path": ")" + base +
        "\"}";
    ASSERT_TRUE(write_tiny_adapter(*fs_, "/store/" + name, tiny).is_ok());
  };
  put_for("mine", "somebody/TINY");
  put_for("other", "somebody/large");
  ASSERT_TRUE(fs_->create_directory("/store/empty").is_ok());
  const auto available = registry_->available();
  ASSERT_EQ(available.size(), 3u);
  EXPECT_EQ(available[0].id, "a");
  EXPECT_EQ(available[0].base_model, "");
  EXPECT_EQ(available[2].id, "mine");
  EXPECT_EQ(available[2].path, "/store/mine");
  EXPECT_EQ(available[2].rank, 8);
  EXPECT_EQ(available[2].scale, 0.5f);
  EXPECT_EQ(available[2].base_model, "somebody/TINY");
}

// In an engine.
class EngineAdaptersTest : public AdapterRegistryTest {
 protected:
  void SetUp() override {
    AdapterRegistryTest::SetUp();
    EngineOptions options;
    options.model_folder = "/tiny";
    options.run = {.numerics = Numerics::kNear, .threads = 2};
    options.prompt_cache_bytes = size_t{64} << 20;
    options.adapters.stores = {"/store"};
    engine_.emplace(std::move(options), *fs_, clock_);
    const Status loaded = engine_->wait_until_loaded();
    ASSERT_TRUE(loaded.is_ok()) << loaded.message();
    adapters_ = engine_->model()->adapters;
  }

  std::shared_ptr<RecordingSink>
  submit(const std::string& adapter, int tokens = 16, bool use_cache = true) {
    GenerationRequest request;
    for (int i = 0; i < 40; ++i) {
      request.prompt.push_back((i * 31) % 256);
    }
    request.max_tokens = tokens;
    request.ignore_eos = true;
    request.use_cache = use_cache;
    request.adapters = *adapters_->choose(adapter);
    auto sink = std::make_shared<RecordingSink>();
    EXPECT_TRUE(engine_->submit(std::move(request), sink).is_ok());
    return sink;
  }
  std::vector<TokenId> answer(
      const std::string& adapter,
      bool use_cache = true) {
    const auto sink = submit(adapter, 16, use_cache);
    EXPECT_TRUE(sink->wait().status.is_ok());
    return sink->ids();
  }

  SystemClock clock_;
  std::optional<Engine> engine_;
  std::shared_ptr<Adapters> adapters_;
};

// What A has read of a prompt is nothing to B, nor to the model alone.
TEST_F(EngineAdaptersTest, CachedPromptsBelongToTheirAdapters) {
  ASSERT_TRUE(adapters_->mount("a", "a").is_ok());
  ASSERT_TRUE(adapters_->mount("b", "b").is_ok());
  std::map<std::string, std::vector<TokenId>> cold;
  for (const std::string id : {"none", "a", "b", "a+b"}) {
    cold[id] = answer(id, /*use_cache=*/false);
  }
  EXPECT_NE(cold["a"], cold["none"]);
  EXPECT_NE(cold["b"], cold["a"]);
  std::set<std::string> seen;
  for (const std::string id :
       {"a", "none", "b", "a+b", "a", "b", "none", "a+b"}) {
    const auto sink = submit(id);
    const int cached = sink->wait().stats.cached_tokens;
    EXPECT_EQ(sink->ids(), cold[id]) << id;
    EXPECT_EQ(cached > 0, !seen.insert(id).second) << id;
  }
}

TEST_F(EngineAdaptersTest, remount_same_id_new_weights_no_stale_kv) {
  ASSERT_TRUE(adapters_->mount("a", "a").is_ok());
  const auto before = answer("a");
  put("/store/a", 2, 2);
  ASSERT_TRUE(adapters_->mount("a", "a").is_ok());
  const auto sink = submit("a");
  EXPECT_EQ(sink->wait().stats.cached_tokens, 0);
  EXPECT_NE(sink->ids(), before);
  EXPECT_EQ(sink->ids(), answer("a", /*use_cache=*/false));
}

TEST_F(EngineAdaptersTest, inactive_byte_identical) {
  const auto before = answer("none", /*use_cache=*/false);
  ASSERT_TRUE(adapters_->mount("a", "a").is_ok());
  EXPECT_EQ(answer("none", /*use_cache=*/false), before);
}

// Acceptance 85: rows keep what they started with, the next request sees the
// new one.
TEST_F(EngineAdaptersTest, mount_during_generation_is_safe) {
  ASSERT_TRUE(adapters_->mount("a", "a").is_ok());
  constexpr int kTokens = 200;
  const auto alone = submit("a", kTokens, false);
  alone->wait();
  std::vector<std::shared_ptr<RecordingSink>> running;
  for (int i = 0; i < 4; ++i) {
    running.push_back(submit("a", kTokens, false));
  }
  put("/store/a", 2, 2);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(adapters_->mount("a", i % 2 == 0 ? "a" : "b").is_ok());
    ASSERT_TRUE(adapters_->unmount("a").is_ok());
  }
  ASSERT_TRUE(adapters_->mount("a", "a").is_ok());
  const auto next = submit("a", kTokens, false);
  for (const auto& sink : running) {
    EXPECT_TRUE(sink->wait().status.is_ok());
    EXPECT_EQ(sink->ids(), alone->ids());
  }
  EXPECT_TRUE(next->wait().status.is_ok());
  EXPECT_NE(next->ids(), alone->ids());
}

TEST_F(AdapterRegistryTest, BadAdapterOfAFlagKeepsTheServerFromStarting) {
  EngineOptions options;
  options.model_folder = "/tiny";
  options.adapters.mounted = {{"x", "/elsewhere/none"}};
  SystemClock clock;
  Engine engine(std::move(options), *fs_, clock);
  const Status loaded = engine.wait_until_loaded();
  EXPECT_FALSE(loaded.is_ok());
  EXPECT_THAT(loaded.message(), HasSubstr("/elsewhere/none"));
}

} // namespace
} // namespace ingle

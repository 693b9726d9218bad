// Adapters: what is read of them, and what models answer with them, against
// mlx-lm's.
#include "model/lora.h"

#include <cmath>
#include <cstring>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/testing/golden_models.h"
#include "model/testing/tiny_adapter.h"
#include "model/testing/tiny_llama.h"
#include "weights/safetensors_writer.h"

namespace ingle {
namespace {

using testing::HasSubstr;
using Adapters = std::vector<std::shared_ptr<const Adapter>>;

std::vector<RunOptions> all_runs() {
  std::vector<RunOptions> runs = kernel_runs();
  runs.insert(runs.begin(), {.numerics = Numerics::kExact, .threads = 2});
  return runs;
}

std::string name_of(const RunOptions& run) {
  return run.numerics == Numerics::kFast ? "fast"
      : run.isa.empty()                  ? "mlx"
                                         : run.isa;
}

// Of logits, as in model_test.cpp.
float bound_of(Numerics numerics) {
  return numerics == Numerics::kExact ? 1e-3f : 0.12f;
}

std::shared_ptr<const Adapter> load_adapter(
    const Model& model,
    const TinyAdapter& tiny) {
  const auto fs = make_memory_file_system();
  EXPECT_TRUE(write_tiny_adapter(*fs, "/adapter", tiny).is_ok());
  auto adapter = Adapter::load(*fs, "/adapter", *model.adapter_layout());
  EXPECT_TRUE(adapter.is_ok()) << adapter.status().message();
  return adapter.is_ok() ? *adapter : nullptr;
}

std::unique_ptr<const Model> load_tiny(
    const RunOptions& run,
    bool quantised = true) {
  const auto fs = make_memory_file_system();
  EXPECT_TRUE(write_tiny_llama(*fs, "/tiny", {.quantised = quantised}).is_ok());
  auto model = load_model(*fs, "/tiny", run);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return std::move(model).value();
}

// The logits after the last of the tokens, with adapters.
std::vector<float> step_with(
    const Model& model,
    KvState& kv,
    std::span<const TokenId> tokens,
    const AdapterSet* adapters) {
  const Row row{tokens, &kv, Logits::kLast, adapters};
  const auto logits = run_step(model, {&row, 1});
  EXPECT_TRUE(logits.is_ok()) << logits.status().message();
  const float* data = (*logits)->data<float>();
  return {data, data + model.config().vocab_size};
}

std::vector<float>
answer_with(const Model& model, const AdapterSet* adapters, int tokens = 30) {
  KvState kv = model.make_kv();
  return step_with(model, kv, some_tokens(tokens), adapters);
}

// Models with adapters.

using GoldenParam = std::tuple<RunOptions, bool>;

class LoraGoldenTest : public testing::TestWithParam<GoldenParam> {};

INSTANTIATE_TEST_SUITE_P(
    TinyLlama,
    LoraGoldenTest,
    testing::Combine(testing::ValuesIn(near_runs()), testing::Bool()));
INSTANTIATE_TEST_SUITE_P(
    TinyLlamaExact,
    LoraGoldenTest,
    testing::Combine(
        testing::Values(RunOptions{.numerics = Numerics::kExact, .threads = 2}),
        testing::Bool()));

TinyAdapter adapter_of(const Json& golden) {
  TinyAdapter tiny{golden["adapter_config"].dump(), {}};
  for (const Json& tensor : golden["adapter"]) {
    tiny.tensors.push_back({tensor[0], tensor[1], tensor[2].get<int>()});
  }
  return tiny;
}

TEST_P(LoraGoldenTest, TokensAndLogitsEqualTheOracle) {
  const auto& [run, quantised] = GetParam();
  const Json golden =
      golden_case_in("tiny_lora.json", quantised ? "4bit" : "dense");
  const auto model = load_tiny(run, quantised);
  const auto adapter = load_adapter(*model, adapter_of(golden));
  ASSERT_NE(adapter, nullptr);
  EXPECT_EQ(adapter->info().modules, 14);
  const auto set = AdapterSet::of({adapter});
  for (const Json& answer : golden["answers"]) {
    KvState kv = model->make_kv();
    std::vector<TokenId> tokens = answer["prompt_ids"];
    for (size_t i = 0; i < answer["ids"].size(); ++i) {
      const auto logits = step_with(*model, kv, tokens, set.get());
      for (const Json& entry : answer["top"][i]) {
        EXPECT_NEAR(
            logits[entry[0].get<size_t>()],
            entry[1].get<float>(),
            bound_of(run.numerics));
      }
      tokens = {answer["ids"][i].get<TokenId>()};
      EXPECT_EQ(std::ranges::max_element(logits) - logits.begin(), tokens[0]);
    }
  }
}

class LoraTest : public testing::TestWithParam<RunOptions> {
 protected:
  bool has_kernels() const {
    return uses_kernels(GetParam().numerics);
  }
  std::shared_ptr<const AdapterSet> set_of(int rank, float scale) const {
    return AdapterSet::of(
        {load_adapter(*model, tiny_llama_adapter(rank, scale))});
  }

  const std::unique_ptr<const Model> model = load_tiny(GetParam());
};

INSTANTIATE_TEST_SUITE_P(
    Runs,
    LoraTest,
    testing::ValuesIn(all_runs()),
    [](const auto& each) { return name_of(each.param); });

TEST_P(LoraTest, a_b_a_no_residue) {
  const auto a = set_of(4, 2);
  const auto b = set_of(3, 1);
  const auto base = answer_with(*model, nullptr);
  const auto with_a = answer_with(*model, a.get());
  const auto with_b = answer_with(*model, b.get());
  EXPECT_GT(distance(base, with_a), 0.1f);
  EXPECT_GT(distance(with_a, with_b), 0.1f);
  EXPECT_EQ(answer_with(*model, a.get()), with_a);
  EXPECT_EQ(answer_with(*model, nullptr), base);
}

TEST_P(LoraTest, scale0_byte_identical) {
  EXPECT_EQ(set_of(4, 0), nullptr);
  const auto zero = load_adapter(*model, tiny_llama_adapter(4, 0));
  const auto a = load_adapter(*model, tiny_llama_adapter(3, 1));
  const auto both = AdapterSet::of({zero, a, zero});
  const auto one = AdapterSet::of({a});
  EXPECT_EQ(both->key(), one->key());
  EXPECT_EQ(answer_with(*model, both.get()), answer_with(*model, one.get()));
}

TEST_P(LoraTest, stack_sums_in_order) {
  const auto a = load_adapter(*model, tiny_llama_adapter(4, 1));
  const auto b = load_adapter(*model, tiny_llama_adapter(3, 1));
  const auto ab = AdapterSet::of({a, b});
  const auto ba = AdapterSet::of({b, a});
  EXPECT_EQ(ab->key(), a->hash() + b->hash());
  EXPECT_EQ(ba->key(), b->hash() + a->hash());
  const LowRank* first = a->find(0);
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(ab->of_linear(0).size(), 2u);
  EXPECT_EQ(ab->of_linear(0)[0].a, first->a);
  EXPECT_EQ(ba->of_linear(0)[1].a, first->a);
  // Twice the same is once with twice the scale.
  const auto twice = AdapterSet::of({a, a});
  const auto doubled = set_of(4, 2);
  EXPECT_LT(
      distance(
          answer_with(*model, twice.get()), answer_with(*model, doubled.get())),
      bound_of(GetParam().numerics));
}

// Acceptance 75: the part about adapters.
TEST_P(LoraTest, any_row_beside_any_row) {
  const auto a = set_of(4, 2);
  const auto b = set_of(3, 1);
  const auto both = AdapterSet::of(
      {load_adapter(*model, tiny_llama_adapter(4, 2)),
       load_adapter(*model, tiny_llama_adapter(3, 1))});
  const std::vector<const AdapterSet*> sets = {
      nullptr, a.get(), both.get(), nullptr, b.get(), b.get(), a.get()};
  // A piece of a prompt beside rows that decode, and few tokens of each.
  for (const int longest : {1, 3, 40}) {
    std::vector<std::vector<TokenId>> prompts;
    for (size_t i = 0; i < sets.size(); ++i) {
      const bool is_long = i == 2;
      prompts.push_back(some_tokens(
          is_long ? longest : 1 + longest / 4, static_cast<int>(i)));
    }
    std::vector<std::vector<float>> alone;
    std::vector<KvState> states;
    std::vector<Row> rows;
    states.reserve(sets.size());
    for (size_t i = 0; i < sets.size(); ++i) {
      KvState kv = model->make_kv();
      alone.push_back(step_with(*model, kv, prompts[i], sets[i]));
      states.push_back(model->make_kv());
      rows.push_back({prompts[i], &states[i], Logits::kLast, sets[i]});
    }
    const auto logits = run_step(*model, rows);
    ASSERT_TRUE(logits.is_ok()) << logits.status().message();
    const auto size = static_cast<size_t>(model->config().vocab_size);
    for (size_t i = 0; i < sets.size(); ++i) {
      const float* data = (*logits)->data<float>() + i * size;
      const std::vector<float> own(data, data + size);
      if (has_kernels()) {
        EXPECT_EQ(own, alone[i]) << longest << " " << i;
      } else {
        EXPECT_LT(distance(own, alone[i]), 1e-3f) << longest << " " << i;
      }
    }
  }
}

TEST_P(LoraTest, AnyCutOfAPromptGivesTheSameAnswer) {
  const auto a = set_of(4, 2);
  const auto prompt = some_tokens(30);
  const auto expected = answer_with(*model, a.get());
  for (const size_t size : {1, 7}) {
    KvState kv = model->make_kv();
    std::vector<float> logits;
    for (size_t begin = 0; begin < prompt.size(); begin += size) {
      const size_t count = std::min(size, prompt.size() - begin);
      logits = step_with(
          *model, kv, std::span(prompt).subspan(begin, count), a.get());
    }
    if (has_kernels()) {
      EXPECT_EQ(logits, expected);
    } else {
      EXPECT_LT(distance(logits, expected), 1e-3f);
    }
  }
}

// A and B of each module that takes adapters.
TinyAdapter adapter_for(const AdapterLayout& layout, int rank, float scale) {
  TinyAdapter adapter{lora_config_json(rank, scale), {}};
  std::set<std::string> done; // a module may be of several linears
  for (const LinearPlace& place : layout.linears) {
    if (place.takes_adapters && done.insert(place.module).second) {
      add_factors(place.module, place.in, rank, place.module_out, adapter);
    }
  }
  return adapter;
}

// Families whose layers are of other kinds.
class LoraFamilyTest
    : public testing::TestWithParam<std::pair<const char*, const char*>> {};

INSTANTIATE_TEST_SUITE_P(
    Families,
    LoraFamilyTest,
    testing::Values(
        std::pair("tiny_families.json", "phi3"),
        std::pair("tiny_families.json", "starcoder2"),
        std::pair("tiny_families.json", "gemma2"),
        std::pair("tiny_hybrid.json", ""),
        std::pair("tiny_gemma4.json", "")));

TEST_P(LoraFamilyTest, KernelsAnswerAsMlxDoes) {
  const auto& [file, wanted] = GetParam();
  int compared = 0;
  for (const Json& golden : golden_cases(file)) {
    const auto name = golden["name"].get<std::string>();
    if (!name.starts_with(wanted)) {
      continue;
    }
    SCOPED_TRACE(name);
    const auto exact =
        load_golden({.numerics = Numerics::kExact, .threads = 2}, golden);
    const auto near =
        load_golden({.numerics = Numerics::kNear, .threads = 2}, golden);
    ASSERT_TRUE(exact.is_ok() && near.is_ok());
    const TinyAdapter tiny = adapter_for(*(*exact)->adapter_layout(), 4, 0.5f);
    const auto set = AdapterSet::of({load_adapter(**exact, tiny)});
    const auto expected = answer_with(**exact, set.get(), 20);
    EXPECT_GT(distance(answer_with(**exact, nullptr, 20), expected), 1e-2f);
    EXPECT_LT(
        distance(answer_with(**near, set.get(), 20), expected),
        bound_of(Numerics::kNear));
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// Files.

class AdapterFileTest : public testing::Test {
 protected:
  void SetUp() override {
    layout_.linears = {
        {"model.layers.0.self_attn.q_proj", 6, 4, {{0, 4}}, true},
        {"model.layers.0.self_attn.qkv_proj", 6, 8, {{0, 2}, {4, 2}}, true},
        {"model.layers.0.self_attn.qkv_proj", 6, 8, {{2, 2}, {6, 2}}, true},
        {"model.layers.0.mlp.gate", 6, 3, {{0, 3}}, false}};
    layout_.modules = {
        "model.embed_tokens",
        "model.layers.0.self_attn.q_proj",
        "model.layers.0.self_attn.qkv_proj",
        "model.layers.0.mlp.gate"};
  }

  static std::vector<TinyTensor>
  factors(const std::string& module, int64_t in, int64_t rank, int64_t out) {
    TinyAdapter adapter;
    add_factors(module, in, rank, out, adapter);
    return adapter.tensors;
  }
  Result<std::shared_ptr<const Adapter>> load(const TinyAdapter& tiny) {
    EXPECT_TRUE(write_tiny_adapter(*fs_, "/a", tiny).is_ok());
    return Adapter::load(*fs_, "/a", layout_);
  }
  // Of a file that does not fit.
  std::string refusal(const TinyAdapter& tiny) {
    const auto loaded = load(tiny);
    EXPECT_FALSE(loaded.is_ok());
    EXPECT_EQ(loaded.status().message().find('\n'), std::string::npos);
    return loaded.status().message();
  }

  const std::string q_ = "model.layers.0.self_attn.q_proj";
  const std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  AdapterLayout layout_;
};

constexpr char kScale2[] = R"({"lora_parameters": {"scale": 2}})";

TEST_F(AdapterFileTest, mount_reports_layers) {
  TinyAdapter tiny{kScale2, factors(q_, 6, 3, 4)};
  for (const TinyTensor& other : factors("vision.patch", 5, 3, 5)) {
    tiny.tensors.push_back(other);
  }
  const auto adapter = load(tiny);
  ASSERT_TRUE(adapter.is_ok()) << adapter.status().message();
  EXPECT_EQ((*adapter)->info().modules, 1);
  EXPECT_EQ((*adapter)->info().skipped, 1);
  EXPECT_EQ((*adapter)->info().rank, 3);
  EXPECT_EQ((*adapter)->info().scale, 2);
  EXPECT_GE((*adapter)->info().bytes, 30 * sizeof(float));
  EXPECT_EQ((*adapter)->hash().size(), 16u);
  EXPECT_NE((*adapter)->find(0), nullptr);
  EXPECT_EQ((*adapter)->find(1), nullptr);
}

TEST_F(AdapterFileTest, NamesOfAllTrainersAreFound) {
  for (const std::string prefix :
       {"",
        "language_model.",
        "base_model.model.",
        "base_model.model.language_model."}) {
    TinyAdapter tiny{kScale2, factors(prefix + q_, 6, 3, 4)};
    for (TinyTensor& tensor : tiny.tensors) {
      tensor.name += ".weight";
    }
    tiny.weights = "adapter_model.safetensors";
    tiny.config = "optiq_lora_config.json";
    EXPECT_TRUE(load(tiny).is_ok()) << prefix;
  }
}

// A file's values, with each matrix transposed and named as PEFT does.
void rewrite_for_peft(FileSystem& fs, const std::string& folder) {
  const auto file = fs.map(folder + "/adapters.safetensors");
  const auto tensors = parse_safetensors((*file)->bytes(), "a");
  std::vector<TensorSpec> specs;
  std::vector<std::vector<float>> values;
  for (const auto& [name, tensor] : *tensors) {
    const auto rows = static_cast<size_t>(tensor.shape[0]);
    const auto columns = static_cast<size_t>(tensor.shape[1]);
    std::vector<float> turned(rows * columns);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        std::memcpy(
            &turned[c * rows + r],
            tensor.bytes.data() + (r * columns + c) * sizeof(float),
            sizeof(float));
      }
    }
    std::string peft = "base_model.model." + name + ".weight";
    const size_t at = peft.find(".lora_") + 6;
    peft[at] = static_cast<char>(std::toupper(peft[at]));
    specs.push_back(
        {peft, TensorType::kF32, {tensor.shape[1], tensor.shape[0]}});
    values.push_back(std::move(turned));
  }
  auto writer = SafetensorsWriter::create(
      fs, folder + "/adapter_model.safetensors", specs);
  ASSERT_TRUE(writer.is_ok());
  for (size_t i = 0; i < specs.size(); ++i) {
    ASSERT_TRUE((*writer)
                    ->append(specs[i].name, std::as_bytes(std::span(values[i])))
                    .is_ok());
  }
  ASSERT_TRUE((*writer)->finish().is_ok());
  ASSERT_TRUE(fs.remove(folder + "/adapters.safetensors").is_ok());
}

TEST_F(AdapterFileTest, PeftsLayoutIsTheSameAdapter) {
  // The last is square: names decide.
  layout_.linears[0].module_out = 6;
  layout_.linears[0].rows = {{0, 6}};
  for (const int rank : {3, 6}) {
    const auto mlx = load({kScale2, factors(q_, 6, rank, 6)});
    ASSERT_TRUE(mlx.is_ok()) << mlx.status().message();
    rewrite_for_peft(*fs_, "/a");
    ASSERT_TRUE(write_file(
                    *fs_,
                    "/a/adapter_config.json",
                    as_bytes(
                        R"({"peft_type": "LORA", "lora_alpha": )" +
                        std::to_string(2 * rank) + R"(, "r": )" +
                        std::to_string(rank) + "}"))
                    .is_ok());
    const auto peft = Adapter::load(*fs_, "/a", layout_);
    ASSERT_TRUE(peft.is_ok()) << peft.status().message();
    EXPECT_EQ((*peft)->hash(), (*mlx)->hash());
    const LowRank& a = *(*mlx)->find(0);
    const LowRank& b = *(*peft)->find(0);
    EXPECT_TRUE(std::equal(a.a, a.a + rank * 6, b.a));
    EXPECT_TRUE(std::equal(a.b, a.b + rank * 6, b.b));
    EXPECT_EQ(a.scale, b.scale);
  }
}

TEST_F(AdapterFileTest, PartsOfAModuleGetTheirRows) {
  const auto loaded =
      load({kScale2, factors("model.layers.0.self_attn.qkv_proj", 6, 2, 8)});
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  layout_.linears[1].rows = {{0, 8}};
  const auto whole = Adapter::load(*fs_, "/a", layout_);
  ASSERT_TRUE(whole.is_ok());
  const float* all = (*whole)->find(1)->b;
  const float* own = (*loaded)->find(2)->b; // outputs 2, 3, 6, 7
  for (const int r : {0, 1}) {
    for (const auto& [i, out] : {std::pair(0, 2), {1, 3}, {2, 6}, {3, 7}}) {
      EXPECT_EQ(own[r * 4 + i], all[r * 8 + out]);
    }
  }
}

TEST_F(AdapterFileTest, bad_adapter_fails_at_mount_all_or_nothing) {
  const auto good = factors(q_, 6, 3, 4);
  const auto with = [&](std::vector<TinyTensor> more) {
    more.insert(more.end(), good.begin(), good.end());
    return TinyAdapter{kScale2, std::move(more)};
  };
  EXPECT_THAT(
      refusal({kScale2, factors(q_, 6, 3, 5)}),
      HasSubstr(
          "/a/adapters.safetensors: tensor '" + q_ +
          "' has the shapes [6, 3] and [3, 5]"));
  EXPECT_THAT(refusal({kScale2, {good[0]}}), HasSubstr("lora_b' is missing"));
  EXPECT_THAT(
      refusal({kScale2, factors("model.layers.9.self_attn.q_proj", 6, 3, 4)}),
      HasSubstr("none of its 1 modules is one of this model"));
  EXPECT_THAT(
      refusal(with(factors("model.embed_tokens", 6, 3, 4))),
      HasSubstr("adapts 'model.embed_tokens'"));
  EXPECT_THAT(
      refusal(with(factors("model.layers.0.mlp.gate", 6, 3, 3))),
      HasSubstr("adapts 'model.layers.0.mlp.gate'"));
  EXPECT_THAT(
      refusal(with(factors("model.layers.0.mlp.experts.1.up_proj", 6, 3, 3))),
      HasSubstr("experts are not supported"));
  EXPECT_THAT(
      refusal(with(factors("lm_head", 6, 3, 3))),
      HasSubstr("heads are not supported"));
  EXPECT_THAT(
      refusal(with({{q_ + ".lora_magnitude_vector", {4}, 0}})),
      HasSubstr("lora_magnitude_vector' is no lora_a or lora_b"));
  EXPECT_THAT(refusal({R"({"use_dora": true})", good}), HasSubstr("use_dora"));
  EXPECT_THAT(
      refusal({R"({"modules_to_save": ["lm_head"]})", good}),
      HasSubstr("modules_to_save"));
  EXPECT_THAT(
      refusal({R"({"lora_parameters": {"scale": "2"}})", good}),
      HasSubstr("lora_parameters: the field 'scale'"));
  EXPECT_THAT(
      refusal({R"({"lora_parameters": {"scale": 1e99}})", good}),
      HasSubstr("'scale'"));
  EXPECT_THAT(refusal({R"({"r": 8})", good}), HasSubstr("says that '" + q_));
  EXPECT_THAT(refusal({"[]", good}), HasSubstr("not a JSON object"));
  // After all of them, a good one is there.
  EXPECT_TRUE(load(with({})).is_ok());
}

TEST_F(AdapterFileTest, WhatIsNotThereIsSaidByName) {
  EXPECT_THAT(
      Adapter::load(*fs_, "/none", layout_).status().message(),
      HasSubstr("/none: has no adapter_config.json"));
  ASSERT_TRUE(load({kScale2, factors(q_, 6, 3, 4)}).is_ok());
  ASSERT_TRUE(fs_->remove("/a/adapters.safetensors").is_ok());
  EXPECT_THAT(
      Adapter::load(*fs_, "/a", layout_).status().message(),
      HasSubstr("/a: has neither adapters.safetensors nor"));
  ASSERT_TRUE(
      write_file(*fs_, "/a/adapters.safetensors", as_bytes("\1\2\3")).is_ok());
  EXPECT_EQ(
      Adapter::load(*fs_, "/a", layout_).status().code(),
      StatusCode::kCorruption);
}

TEST_F(AdapterFileTest, rslora_scale) {
  const auto scale_of = [&](const std::string& config) {
    const auto loaded = load({config, factors(q_, 6, 4, 4)});
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
    return (*loaded)->find(0)->scale;
  };
  EXPECT_EQ(scale_of(R"({"lora_parameters": {"scale": 3}})"), 3);
  EXPECT_EQ(scale_of(R"({"lora_parameters": {}})"), 20);
  EXPECT_EQ(
      scale_of(R"({"lora_parameters": {"scale": 3}, "rs_lora": true})"), 1.5f);
  EXPECT_EQ(scale_of(R"({"lora_alpha": 6, "r": 4})"), 1.5f);
  EXPECT_EQ(scale_of(R"({"r": 4})"), 4);
  EXPECT_EQ(scale_of(R"({"lora_alpha": 6, "r": 4, "use_rslora": true})"), 3);
  EXPECT_EQ(
      scale_of(
          R"({"lora_alpha": 6, "r": 8, "rank_pattern": {"q_proj": 4},
              "alpha_pattern": {"self_attn.q_proj": 2}})"),
      0.5f);
}

// Acceptance 130: what the prompt cache goes by.
TEST_F(AdapterFileTest, remount_same_id_new_weights_no_stale_kv) {
  const auto key_of = [&](const TinyAdapter& tiny) {
    const auto loaded = load(tiny);
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
    return AdapterSet::of({*loaded})->key();
  };
  const TinyAdapter first{kScale2, factors(q_, 6, 3, 4)};
  TinyAdapter retrained = first;
  retrained.tensors[1].exponent = 1;
  const TinyAdapter louder{
      R"({"lora_parameters": {"scale": 3}})", first.tensors};
  const std::string key = key_of(first);
  EXPECT_EQ(key_of(first), key);
  EXPECT_NE(key_of(retrained), key);
  EXPECT_NE(key_of(louder), key);
}

} // namespace
} // namespace ingle

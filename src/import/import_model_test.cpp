#include "import/import_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <random>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file_system_faulty.h"
#include "base/testing/small_disk.h"
#include "import/affine.h"
#include "import/dequantize.h"
#include "import/model_plan.h"
#include "import/testing/gguf_builder.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// The values of module `name` in an imported folder, in f32.
std::vector<float> imported_values(
    const std::map<std::string, TensorView>& tensors,
    const std::string& name,
    const json& config) {
  const TensorView& weight = tensors.at(name + ".weight");
  if (tensors.count(name + ".scales") == 0) {
    const GgmlType type = weight.type == TensorType::kF32 ? GgmlType::kF32
        : weight.type == TensorType::kF16                 ? GgmlType::kF16
                                                          : GgmlType::kBF16;
    std::vector<float> values(weight.bytes.size() / element_size(weight.type));
    dequantize(type, weight.bytes, values);
    return values;
  }
  const json& quantization = config["quantization"];
  const int bits = quantization.contains(name) ? quantization[name]["bits"]
                                               : quantization["bits"];
  return from_affine(
      bits,
      tensors.at(name + ".scales").type,
      weight.bytes,
      tensors.at(name + ".scales").bytes,
      tensors.at(name + ".biases").bytes);
}

// Compares every tensor with a straight dequantisation of the GGUF file.
void expect_equal_values(
    FileSystem& fs,
    const std::string& gguf,
    const ImportReport& report) {
  const auto mapping = fs.map(gguf);
  const auto file = GgufFile::parse((*mapping)->bytes(), gguf);
  ASSERT_TRUE(file.is_ok());
  const auto plan = plan_model(*file);
  ASSERT_TRUE(plan.is_ok());
  const auto folder = WeightFolder::open(fs, report.folder);
  ASSERT_TRUE(folder.is_ok()) << folder.status().message();
  const json config = json::parse(*fs.read(report.folder + "/config.json"));
  ASSERT_EQ(report.tensors.size(), plan->tensors.size());
  for (size_t t = 0; t < plan->tensors.size(); ++t) {
    const TensorPlan& tensor = plan->tensors[t];
    const auto rows = tensor.source->rows();
    const auto columns = static_cast<size_t>(tensor.source->columns());
    std::vector<float> straight(static_cast<size_t>(rows) * columns);
    dequantize(tensor.source->type, tensor.source->bytes, straight);
    const auto imported =
        imported_values((*folder)->tensors(), tensor.module, config);
    ASSERT_EQ(imported.size(), straight.size()) << tensor.module;
    if (!report.tensors[t].is_exact) {
      continue;
    }
    if (tensor.is_one_plus) {
      for (float& value : straight) {
        value -= 1;
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      const auto to = static_cast<size_t>(row) * columns;
      const auto from = static_cast<size_t>(source_row(tensor, row)) * columns;
      const std::span stored(imported.data() + to, columns);
      ASSERT_TRUE(
          std::equal(stored.begin(), stored.end(), straight.data() + from))
          << tensor.module << ", row " << row;
    }
  }
}

class ImportTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs_->create_directory("/in").is_ok());
  }
  Result<ImportReport> import(const GgufBuilder& builder) {
    const std::string bytes = builder.build();
    EXPECT_TRUE(write_file(*fs_, kGguf, as_bytes(bytes)).is_ok());
    return import_gguf(*fs_, kGguf, "/out/model");
  }
  // The failure's message; nothing may be left.
  std::string problem(const GgufBuilder& builder) {
    const auto report = import(builder);
    EXPECT_FALSE(report.is_ok());
    EXPECT_THAT(report.status().message(), HasSubstr(kGguf));
    EXPECT_EQ(report.status().message().find('\n'), std::string::npos);
    expect_nothing_left(*fs_);
    return report.status().message();
  }
  static void expect_nothing_left(FileSystem& fs) {
    const auto names = fs.list("/out");
    EXPECT_TRUE(!names.is_ok() || names->empty());
  }
  json config() {
    return json::parse(*fs_->read("/out/model/config.json"));
  }

  static constexpr const char* kGguf = "/in/model.gguf";
  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

class ImportTypeTest : public ImportTest,
                       public testing::WithParamInterface<GgmlType> {};

TEST_P(ImportTypeTest, EveryTensorEqualsStraightDequantisation) {
  const auto report = import(tiny_llama(GetParam(), 256));
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  expect_equal_values(*fs_, kGguf, *report);
}

INSTANTIATE_TEST_SUITE_P(
    Import,
    ImportTypeTest,
    testing::Values(
        GgmlType::kF32,
        GgmlType::kF16,
        GgmlType::kBF16,
        GgmlType::kQ4_0,
        GgmlType::kQ4_1,
        GgmlType::kQ5_0,
        GgmlType::kQ5_1,
        GgmlType::kQ8_0,
        GgmlType::kQ2_K,
        GgmlType::kQ3_K,
        GgmlType::kQ4_K,
        GgmlType::kQ5_K,
        GgmlType::kQ6_K),
    [](const auto& test) {
      return std::string(ggml_type_info(test.param).name);
    });

TEST_F(ImportTest, WritesTheWholeFolder) {
  const auto report = import(tiny_llama(GgmlType::kQ4_1, 32));
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(
      *fs_->list("/out/model"),
      (std::vector<std::string>{
          "chat_template.jinja",
          "config.json",
          "generation_config.json",
          "model.safetensors",
          "tokenizer.json",
          "tokenizer_config.json"}));
  EXPECT_EQ(*fs_->list("/out"), std::vector<std::string>{"model"});
  const json written = config();
  EXPECT_EQ(written["model_type"], "llama");
  EXPECT_EQ(written["hidden_size"], 32);
  EXPECT_EQ(written["intermediate_size"], 64);
  EXPECT_EQ(written["num_hidden_layers"], 1);
  EXPECT_EQ(written["num_attention_heads"], 4);
  EXPECT_EQ(written["num_key_value_heads"], 2);
  EXPECT_EQ(written["head_dim"], 8);
  EXPECT_EQ(written["rms_norm_eps"], 1e-5);
  EXPECT_EQ(written["rope_theta"], 10000.0);
  EXPECT_EQ(written["max_position_embeddings"], 128);
  EXPECT_EQ(written["vocab_size"], 5);
  EXPECT_EQ(written["tie_word_embeddings"], true);
  EXPECT_EQ(written["eos_token_id"], 0);
  EXPECT_EQ(
      written["quantization"],
      json::parse(R"({"group_size":32,"bits":4,"mode":"affine"})"));
  EXPECT_EQ(written["quantization_config"], written["quantization"]);
}

TEST_F(ImportTest, ReportsEveryTensorAndTotals) {
  const auto report = import(tiny_llama(GgmlType::kQ4_1, 32));
  ASSERT_TRUE(report.is_ok());
  EXPECT_EQ(report->architecture, "llama");
  EXPECT_EQ(report->tensors.size(), 11u);
  EXPECT_EQ(report->tensors[0].gguf_name, "token_embd.weight");
  EXPECT_EQ(report->tensors[0].name, "model.embed_tokens");
  EXPECT_EQ(report->tensors[0].stored_as, "4 bits, groups of 32, F16 scales");
  const auto totals = report->totals();
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].tensors, 8u);
  EXPECT_EQ(totals[0].gguf_bytes, totals[0].stored_bytes);
  EXPECT_EQ(totals[1].gguf_type, "F32");
}

TEST_F(ImportTest, MixedTypesAreNamedByModule) {
  GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 256);
  const auto retype = [&](const char* name, GgmlType type) {
    auto& tensor = builder.tensor(name);
    tensor.type = type;
    tensor.bytes = random_blocks(
        type, tensor.shape[0] * (tensor.shape.size() == 2 ? 256 : 1), 1);
  };
  retype("output_norm.weight", GgmlType::kQ8_0); // stored as F32
  retype("token_embd.weight", GgmlType::kQ6_K);
  retype("blk.0.attn_v.weight", GgmlType::kQ5_K);
  retype("blk.0.attn_q.weight", GgmlType::kF16);
  builder.add_tensor("output.weight", {5, 256}, GgmlType::kQ8_0);
  const auto report = import(builder);
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  expect_equal_values(*fs_, kGguf, *report);
  EXPECT_FALSE(report->tensors[0].is_exact);
  const json quantization = config()["quantization"];
  EXPECT_EQ(quantization["bits"], 4);
  EXPECT_EQ(quantization["model.embed_tokens"]["bits"], 8);
  EXPECT_EQ(quantization["lm_head"]["bits"], 8);
  EXPECT_EQ(quantization["model.layers.0.self_attn.v_proj"]["bits"], 5);
  EXPECT_EQ(quantization["model.layers.0.self_attn.q_proj"], false);
  EXPECT_EQ(quantization.size(), 7u);
  EXPECT_EQ(config()["tie_word_embeddings"], false);
}

TEST_F(ImportTest, PlainModelHasNoQuantization) {
  ASSERT_TRUE(import(tiny_llama(GgmlType::kBF16, 32)).is_ok());
  EXPECT_FALSE(config().contains("quantization"));
}

TEST(SourceRow, UndoesTheInterleavingOfHeads) {
  GgufTensor tensor;
  tensor.shape = {16, 4};
  TensorPlan plan;
  plan.source = &tensor;
  plan.interleaved_heads = 2;
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 16; ++row) {
    rows.push_back(source_row(plan, row));
  }
  // Row 2j + p of a head of 8 becomes row 4p + j.
  EXPECT_EQ(
      rows,
      (std::vector<int64_t>{
          0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15}));
  plan.interleaved_heads = 0;
  EXPECT_EQ(source_row(plan, 5), 5);
}

TEST_F(ImportTest, UnsupportedTypeMessage) {
  GgufBuilder builder = tiny_llama(GgmlType::kQ4_1, 32);
  builder.set("general.architecture", "gemma9");
  EXPECT_EQ(
      problem(builder),
      "/in/model.gguf: architecture 'gemma9' is not supported; ingle imports "
      "gemma3, llama");
}

TEST_F(ImportTest, EveryRequiredKeyIsMissed) {
  for (const char* key :
       {"general.architecture",
        "llama.block_count",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.context_length",
        "llama.attention.layer_norm_rms_epsilon",
        "tokenizer.ggml.model",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.token_type",
        "tokenizer.ggml.merges"}) {
    GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
    builder.erase(key);
    EXPECT_THAT(problem(builder), HasSubstr(std::string(key) + "' is missing"));
  }
}

TEST_F(ImportTest, KeysThatCannotBe) {
  const auto with = [&](const char* key, auto value) {
    GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
    builder.set(key, value);
    return problem(builder);
  };
  EXPECT_THAT(with("llama.block_count", 0u), HasSubstr("block_count' is 0"));
  EXPECT_THAT(
      with("llama.block_count", UINT32_MAX), HasSubstr("block_count' is"));
  EXPECT_THAT(with("llama.block_count", 4097u), HasSubstr("count' is 4097"));
  EXPECT_THAT(
      with("llama.block_count", 2u), HasSubstr("'blk.1.attn_norm.weight'"));
  EXPECT_THAT(with("llama.block_count", 1.0f), HasSubstr("wrong type"));
  EXPECT_THAT(with("llama.attention.head_count", 5u), HasSubstr("heads"));
  EXPECT_THAT(with("llama.attention.head_count_kv", 3u), HasSubstr("heads"));
  EXPECT_THAT(with("llama.attention.key_length", 16u), HasSubstr("shape"));
  EXPECT_THAT(with("llama.rope.dimension_count", 4u), HasSubstr("is 4"));
  EXPECT_THAT(with("llama.expert_count", 8u), HasSubstr("mixture of 8"));
  EXPECT_THAT(with("llama.rope.scaling.type", "yarn"), HasSubstr("'yarn'"));
  EXPECT_THAT(with("llama.rope.freq_base", 0.0f), HasSubstr("out of range"));
  EXPECT_THAT(
      with("llama.attention.layer_norm_rms_epsilon", std::nanf("")),
      HasSubstr("out of range"));
}

TEST_F(ImportTest, SizesThatDifferByLayerAreRefused) {
  for (const char* key :
       {"llama.attention.head_count",
        "llama.attention.head_count_kv",
        "llama.feed_forward_length"}) {
    GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
    builder.set(key, std::vector<int32_t>{4});
    EXPECT_EQ(
        problem(builder),
        "/in/model.gguf: metadata key '" + std::string(key) +
            "' differs from layer to layer, which ingle does not support");
  }
}

TEST_F(ImportTest, PartsOfAModelAreRefused) {
  GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
  builder.set("split.count", 1u);
  EXPECT_TRUE(import(builder).is_ok());
  ASSERT_TRUE(fs_->remove("/out/model").is_ok());
  builder.set("split.count", 3u);
  EXPECT_EQ(
      problem(builder),
      "/in/model.gguf: is one of 3 parts of a model; merge the parts first "
      "with gguf-split --merge");
}

TEST_F(ImportTest, TemplateThatDoesNotCompileIsRefused) {
  GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
  builder.set("tokenizer.chat_template", "a\n{% if x %}");
  EXPECT_THAT(
      problem(builder),
      HasSubstr("/in/model.gguf: its chat template: line 2: syntax error"));
}

TEST_F(ImportTest, MissingAndUnknownTensorsAreNamed) {
  const size_t count = tiny_llama(GgmlType::kQ4_0, 32).tensors().size();
  for (size_t i = 0; i < count; ++i) {
    GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
    const std::string name = builder.tensors()[i].name;
    builder.tensors().erase(
        builder.tensors().begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THAT(problem(builder), HasSubstr("'" + name + "' is missing"));
  }
  GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
  builder.add_tensor("blk.0.attn_q.bias", {32}, GgmlType::kF32);
  EXPECT_THAT(problem(builder), HasSubstr("'blk.0.attn_q.bias' is not one"));
}

TEST_F(ImportTest, ScaleThatIsNotFiniteIsRefused) {
  GgufBuilder builder = tiny_llama(GgmlType::kQ4_0, 32);
  builder.tensor("blk.0.ffn_up.weight").bytes[1] = 0x7e;
  EXPECT_THAT(problem(builder), HasSubstr("'blk.0.ffn_up.weight' has a scale"));
}

TEST_F(ImportTest, LinearRopeScalingIsKept) {
  GgufBuilder builder = tiny_llama(GgmlType::kF32, 32);
  builder.set("llama.rope.scaling.type", "linear");
  builder.set("llama.rope.scaling.factor", 4.0f);
  ASSERT_TRUE(import(builder).is_ok());
  EXPECT_EQ(
      config()["rope_scaling"],
      json::parse(R"({"rope_type":"linear","factor":4.0})"));
}

// Sets rope_freqs.weight for heads of 8.
void set_rope_freqs(GgufBuilder& builder, const std::vector<float>& values) {
  builder.add_tensor("rope_freqs.weight", {4}, GgmlType::kF32);
  builder.tensor("rope_freqs.weight").bytes =
      std::string(as_text(std::as_bytes(std::span(values))));
}

TEST_F(ImportTest, RopeFrequenciesOfLlama3AreRecognised) {
  GgufBuilder builder = tiny_llama(GgmlType::kF32, 32);
  builder.set("llama.rope.freq_base", 500000.0f);
  // theta^(i/4) * 2 pi = 6.28, 167, 4443 and 118143, against a context of
  // 8192: the third is between 8192 / 4 and 8192, the fourth beyond it.
  const double smooth =
      (8192 / (2 * std::numbers::pi * std::sqrt(500000.0)) - 1) / 3;
  const auto third = static_cast<float>(1 / ((1 - smooth) / 8 + smooth));
  set_rope_freqs(builder, {1, 1, third, 8});
  const auto report = import(builder);
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_EQ(
      config()["rope_scaling"],
      json::parse(R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
                  R"("high_freq_factor":4.0,)"
                  R"("original_max_position_embeddings":8192})"));
  EXPECT_EQ(report->tensors.back().gguf_name, "rope_freqs.weight");
  EXPECT_THAT(report->tensors.back().stored_as, HasSubstr("rope_scaling"));
}

TEST_F(ImportTest, RopeFrequenciesOfOnesAreNoScaling) {
  GgufBuilder builder = tiny_llama(GgmlType::kF32, 32);
  set_rope_freqs(builder, {1, 1, 1, 1});
  ASSERT_TRUE(import(builder).is_ok());
  EXPECT_FALSE(config().contains("rope_scaling"));
}

TEST_F(ImportTest, OtherRopeFrequenciesAreRefused) {
  for (const auto& values : std::vector<std::vector<float>>{
           {1, 2, 3, 4}, {1, 1, 1, NAN}, {0, 0, 0, 0}, {1, 1, 1, -8}}) {
    GgufBuilder builder = tiny_llama(GgmlType::kF32, 32);
    set_rope_freqs(builder, values);
    EXPECT_THAT(problem(builder), HasSubstr("does not recognise"));
  }
}

TEST_F(ImportTest, MissingFileIsNamed) {
  const Status status = import_gguf(*fs_, "/in/none.gguf", "/out/m").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/in/none.gguf"));
}

TEST_F(ImportTest, TruncatedFileLeavesNothing) {
  const std::string bytes = tiny_llama(GgmlType::kQ4_0, 32).build();
  for (const size_t n : {size_t{10}, bytes.size() / 2, bytes.size() - 40}) {
    ASSERT_TRUE(write_file(*fs_, kGguf, as_bytes(bytes).first(n)).is_ok());
    const Status status = import_gguf(*fs_, kGguf, "/out/m").status();
    EXPECT_EQ(status.code(), StatusCode::kCorruption);
    EXPECT_THAT(status.message(), HasSubstr("cut short"));
    expect_nothing_left(*fs_);
  }
}

TEST_F(ImportTest, ExistingFolderIsNotTouched) {
  ASSERT_TRUE(fs_->create_directory("/out/model").is_ok());
  ASSERT_TRUE(write_file(*fs_, "/out/model/x", as_bytes("1")).is_ok());
  const auto report = import(tiny_llama(GgmlType::kQ4_0, 32));
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidRequest);
  EXPECT_THAT(report.status().message(), HasSubstr("/out/model: already"));
  EXPECT_EQ(*fs_->list("/out"), std::vector<std::string>{"model"});
  EXPECT_EQ(*fs_->read("/out/model/x"), "1");
}

TEST_F(ImportTest, EmptyFolderIsFilled) {
  ASSERT_TRUE(fs_->create_directory("/out/model").is_ok());
  EXPECT_TRUE(import(tiny_llama(GgmlType::kQ4_0, 32)).is_ok());
}

TEST_F(ImportTest, PlacesThatAreNoNewFolder) {
  ASSERT_TRUE(write_file(*fs_, "/in/file", as_bytes("1")).is_ok());
  for (const char* place : {"", ".", "..", "/", "/in/..", "/in/file"}) {
    EXPECT_EQ(
        import_gguf(*fs_, kGguf, place).status().code(),
        StatusCode::kInvalidRequest)
        << place;
  }
}

TEST_F(ImportTest, LeftoversOfACrashAreRemoved) {
  const std::string stale = "/out/.model.importing-0123abcd";
  const std::string other = "/out/.model2.importing-0123abcd";
  const std::string foreign = "/out/.model.importing-mine";
  for (const std::string& folder : {stale, other, foreign}) {
    ASSERT_TRUE(fs_->create_directory(folder).is_ok());
  }
  ASSERT_TRUE(import(tiny_llama(GgmlType::kQ4_0, 32)).is_ok());
  EXPECT_FALSE(fs_->exists(stale));
  EXPECT_TRUE(fs_->exists(other));
  EXPECT_TRUE(fs_->exists(foreign));
}

TEST_F(ImportTest, ProgressEndsAtTheTotal) {
  const std::string bytes = tiny_llama(GgmlType::kQ4_0, 32).build();
  ASSERT_TRUE(write_file(*fs_, kGguf, as_bytes(bytes)).is_ok());
  uint64_t last = 0;
  uint64_t whole = 0;
  ASSERT_TRUE(
      import_gguf(*fs_, kGguf, "/out/m/", [&](uint64_t done, uint64_t total) {
        EXPECT_GT(done, last);
        last = done;
        whole = total;
      }).is_ok());
  EXPECT_EQ(last, whole);
  EXPECT_GT(whole, 0u);
}

TEST_F(ImportTest, EveryFailedCallLeavesNothing) {
  const std::string bytes = tiny_llama(GgmlType::kQ4_0, 32).build();
  for (uint64_t n = 1;; ++n) {
    const auto memory = make_memory_file_system();
    ASSERT_TRUE(memory->create_directory("/in").is_ok());
    ASSERT_TRUE(write_file(*memory, kGguf, as_bytes(bytes)).is_ok());
    FaultyFileSystem faulty(*memory, n, StatusCode::kNoSpace);
    const auto report = import_gguf(faulty, kGguf, "/out/model");
    if (report.is_ok()) {
      EXPECT_GT(n, 50u);
      return;
    }
    EXPECT_EQ(report.status().code(), StatusCode::kNoSpace);
    EXPECT_FALSE(report.status().message().empty());
    expect_nothing_left(*memory);
  }
}

TEST_F(ImportTest, FullDiskLeavesNothing) {
  const std::string bytes = tiny_llama(GgmlType::kQ4_0, 32).build();
  ASSERT_TRUE(write_file(*fs_, kGguf, as_bytes(bytes)).is_ok());
  for (uint64_t room = 0;; room += 500) {
    SmallDisk disk(*fs_, room);
    const Status status = import_gguf(disk, kGguf, "/out/m").status();
    if (status.is_ok()) {
      EXPECT_GT(room, 8000u);
      return;
    }
    EXPECT_EQ(status.code(), StatusCode::kNoSpace);
    EXPECT_THAT(
        status.message(),
        AllOf(HasSubstr("cannot write /out/m: "), HasSubstr("No space left")));
    expect_nothing_left(*fs_);
  }
}

TEST_F(ImportTest, DiskThatIsTooSmallIsToldBeforeWriting) {
  const std::string bytes = tiny_llama(GgmlType::kQ4_0, 32).build();
  ASSERT_TRUE(write_file(*fs_, kGguf, as_bytes(bytes)).is_ok());
  SmallDisk disk(*fs_, 5000);
  disk.reports_space = true;
  const Status status = import_gguf(disk, kGguf, "/out/m").status();
  EXPECT_EQ(status.code(), StatusCode::kNoSpace);
  EXPECT_THAT(status.message(), HasSubstr("/out: the model needs"));
  expect_nothing_left(*fs_);
}

TEST_F(ImportTest, DamagedMetadataNeverLeavesAFolderHalfWritten) {
  const std::string good = tiny_llama(GgmlType::kQ4_0, 32).build();
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) {
      bytes[random() % 2000] = static_cast<char>(random());
    }
    ASSERT_TRUE(write_file(*fs_, kGguf, as_bytes(bytes)).is_ok());
    const auto report = import_gguf(*fs_, kGguf, "/out/m");
    if (report.is_ok()) {
      // Without the chat template, where its key was hit.
      EXPECT_GE(fs_->list("/out/m")->size(), 5u) << round;
      ASSERT_TRUE(fs_->remove("/out/m").is_ok());
    }
    expect_nothing_left(*fs_);
  }
}

// A real file, where there is one.
TEST(ImportRealFile, EveryTensorEqualsStraightDequantisation) {
  const char* gguf = std::getenv("INGLE_TEST_GGUF");
  if (gguf == nullptr) {
    GTEST_SKIP() << "INGLE_TEST_GGUF names no file";
  }
  const auto fs = make_posix_file_system();
  const std::string folder = testing::TempDir() + "ingle-import-real";
  ASSERT_TRUE(fs->remove(folder).is_ok());
  const auto report = import_gguf(*fs, gguf, folder);
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  expect_equal_values(*fs, gguf, *report);
  EXPECT_TRUE(fs->remove(folder).is_ok());
}

} // namespace
} // namespace ingle

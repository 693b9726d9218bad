// Gemma 3 270M: how far what each mode and each way to hold keys and values
// predicts is from the exact one, over a text that is longer than the window.
#include <filesystem>
#include <fstream>

#include "divergence.h"

namespace ingle {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kWindow = 512;
constexpr size_t kTokens = 1024;
constexpr size_t kChunk = 128; // tokens

// The model with a kv_config.json: layers that see all positions in 8 bits,
// those with a window in 4, the first one in full.
class MixedFolder {
 public:
  MixedFolder() : path_(testing::TempDir() + "ingle-gemma3-mixed") {
    stdfs::remove_all(path_);
    stdfs::create_directory(path_);
    for (const auto& file : stdfs::directory_iterator(folder_of(kGemma3))) {
      stdfs::create_symlink(file.path(), path_ / file.path().filename());
    }
    std::ofstream list(path_ / "kv_config.json");
    list << "[";
    for (int layer = 1; layer < 18; ++layer) {
      list << (layer == 1 ? "" : ",") << R"({"layer_idx":)" << layer
           << R"(,"group_size":64,"bits":)" << ((layer + 1) % 6 == 0 ? 8 : 4)
           << "}";
    }
    list << "]";
  }
  ~MixedFolder() {
    stdfs::remove_all(path_);
  }
  MixedFolder(const MixedFolder&) = delete;
  MixedFolder& operator=(const MixedFolder&) = delete;

  std::unique_ptr<const Model> load(const RunOptions& options) const {
    const auto fs = make_posix_file_system();
    auto loaded = load_model(*fs, path_.string(), options);
    return loaded.is_ok() ? std::move(loaded).value() : nullptr;
  }

 private:
  stdfs::path path_;
};

// Logits of the text, chunk by chunk.
std::vector<mx::array> read_text(
    std::unique_ptr<const Model> model,
    std::span<const TokenId> tokens) {
  Reader reader(std::move(model));
  std::vector<mx::array> logits;
  for (size_t begin = 0; begin < kTokens; begin += kChunk) {
    logits.push_back(reader.read(tokens.subspan(begin, kChunk)));
  }
  return logits;
}

class Gemma3KlTest : public testing::Test {
 protected:
  void SetUp() override {
    auto exact = load(kGemma3, {.numerics = Numerics::kExact});
    if (exact == nullptr) {
      GTEST_SKIP() << kGemma3.absent;
    }
    tokens_ = text_tokens(kGemma3);
    ASSERT_GE(tokens_.size(), kTokens);
    truth_ = read_text(std::move(exact), tokens_);
  }

  // Of the positions from `first` on.
  Divergence divergence(
      const std::string& name,
      std::unique_ptr<const Model> model,
      size_t first = 0) {
    Divergence result;
    if (model == nullptr) {
      ADD_FAILURE() << name << ": can't be loaded";
      return result;
    }
    const auto logits = read_text(std::move(model), tokens_);
    for (size_t position = first; position < kTokens; ++position) {
      const size_t chunk = position / kChunk;
      const size_t row = position % kChunk;
      result.add(
          log_softmax(truth_[chunk], row), log_softmax(logits[chunk], row));
    }
    result.tell(name);
    return result;
  }

  std::vector<TokenId> tokens_;
  std::vector<mx::array> truth_; // a gigabyte
};

TEST_F(Gemma3KlTest, NearAndFastPredictWhatExactDoes) {
  const Divergence near =
      divergence("near", load(kGemma3, {.numerics = Numerics::kNear}));
  EXPECT_LE(near.mean(), 1e-5);
  EXPECT_GE(near.top1(), 0.997);
  const Divergence fast =
      divergence("fast", load(kGemma3, {.numerics = Numerics::kFast}));
  EXPECT_LE(fast.mean(), 5e-3);
  EXPECT_GE(fast.top1(), 0.96);
}

// With the kernels about as much as with MLX's quantisation. Positions that no
// longer see the first, so that windows have moved on.
TEST_F(Gemma3KlTest, QuantizedStatesCostWhatTheyCostExact) {
  const MixedFolder mixed;
  const auto compare = [&](const std::string& name, const auto& load_in) {
    const Divergence exact =
        divergence("exact_" + name, load_in(Numerics::kExact), kWindow);
    const Divergence near =
        divergence("near_" + name, load_in(Numerics::kNear), kWindow);
    EXPECT_LE(near.mean(), 1.5 * exact.mean()) << name;
  };
  for (const KvQuantization& kv :
       {KvQuantization{8, 64}, KvQuantization{4, 32}}) {
    compare("kv_" + std::to_string(kv.bits) + "_bits", [&](Numerics numerics) {
      return load(
          kGemma3,
          {.numerics = numerics, .kv_quant = KvQuant::kUniform, .kv = kv});
    });
  }
  compare("kv_config", [&](Numerics numerics) {
    return mixed.load({.numerics = numerics});
  });
}

} // namespace
} // namespace ingle

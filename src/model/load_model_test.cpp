#include "model/load_model.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file_system_faulty.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

class LoadModelTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_tiny_llama(*fs_, "/tiny").is_ok());
  }

  void set(const std::string& field, const Json& value) {
    Json config = Json::parse(*fs_->read("/tiny/config.json"));
    config[field] = value;
    ASSERT_TRUE(
        write_file(*fs_, "/tiny/config.json", as_bytes(config.dump())).is_ok());
  }

  Status failure() {
    const Status status =
        load_model(*fs_, "/tiny", {Numerics::kExact}).status();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_NE(status.message().find("/tiny"), std::string::npos)
        << status.message();
    return status;
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

TEST_F(LoadModelTest, LoadsInEveryMode) {
  for (const Numerics numerics :
       {Numerics::kExact,
        Numerics::kNear,
        Numerics::kFast,
        Numerics::kNative}) {
    EXPECT_TRUE(load_model(*fs_, "/tiny", {numerics}).is_ok());
  }
}

TEST_F(LoadModelTest, InstructionSetThatIsNotThereIsAnError) {
  const Status status =
      load_model(*fs_, "/tiny", {.numerics = Numerics::kNear, .isa = "sse9"})
          .status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_NE(status.message().find("'sse9'"), std::string::npos);
}

// Acceptance 206.
TEST_F(LoadModelTest, unconsumed_tensor_is_error) {
  set("num_hidden_layers", 2);
  const Status status = failure();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(
      status.message().find("model.layers.2.input_layernorm.weight"),
      std::string::npos)
      << status.message();
}

TEST_F(LoadModelTest, MissingTensorIsNamed) {
  set("num_hidden_layers", 4);
  const Status status = failure();
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_NE(
      status.message().find(
          "model.layers.3.input_layernorm.weight' is missing from the weights"),
      std::string::npos)
      << status.message();
}

TEST_F(LoadModelTest, ShapeThatContradictsTheConfigIsNamed) {
  set("intermediate_size", 96);
  const Status status = failure();
  EXPECT_NE(
      status.message().find("/tiny/model.safetensors: tensor "),
      std::string::npos);
  EXPECT_NE(
      status.message().find("has the shape [128, 64] where the config asks for "
                            "[96, 64]"),
      std::string::npos)
      << status.message();
}

TEST_F(LoadModelTest, ScalesWithoutQuantisationInTheConfigAreAnError) {
  ASSERT_TRUE(fs_->remove("/tiny").is_ok());
  ASSERT_TRUE(write_tiny_llama(*fs_, "/tiny", {.quantised = true}).is_ok());
  set("quantization", nullptr);
  set("quantization_config", nullptr);
  EXPECT_NE(
      failure().message().find("says that the module is not quantised"),
      std::string::npos);
}

TEST_F(LoadModelTest, TruncatedWeightsAreNamed) {
  const std::string whole = *fs_->read("/tiny/model.safetensors");
  for (const size_t size :
       {size_t{0}, size_t{5}, size_t{500}, whole.size() - 1}) {
    ASSERT_TRUE(write_file(
                    *fs_,
                    "/tiny/model.safetensors",
                    as_bytes(std::string_view(whole).substr(0, size)))
                    .is_ok());
    const Status status = failure();
    EXPECT_EQ(status.code(), StatusCode::kCorruption);
    EXPECT_NE(status.message().find("model.safetensors"), std::string::npos);
  }
}

TEST_F(LoadModelTest, AbsentFilesAreNamed) {
  ASSERT_TRUE(fs_->remove("/tiny/model.safetensors").is_ok());
  EXPECT_EQ(failure().code(), StatusCode::kNotFound);
  ASSERT_TRUE(fs_->remove("/tiny/config.json").is_ok());
  EXPECT_NE(failure().message().find("config.json"), std::string::npos);
}

TEST_F(LoadModelTest, EveryFailedCallIsAnErrorAndNothingElse) {
  for (uint64_t n = 1;; ++n) {
    FaultyFileSystem faulty(*fs_, n, StatusCode::kIo);
    const auto model = load_model(faulty, "/tiny", {Numerics::kExact});
    if (faulty.calls() < n) {
      EXPECT_TRUE(model.is_ok());
      EXPECT_GT(n, 2u);
      return;
    }
  }
}

TEST_F(LoadModelTest, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(
      load_model(*fs_, "/tiny", {Numerics::kExact}, stop.get_token())
          .status()
          .code(),
      StatusCode::kCancelled);
}

} // namespace
} // namespace ingle

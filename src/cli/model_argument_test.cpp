#include "cli/model_argument.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

class ModelArgumentTest : public testing::Test {
 protected:
  void add_model(const std::string& name) {
    const std::string folder = join_path("/ingle/models", name);
    ASSERT_TRUE(fs_->create_directory(folder).is_ok());
    ASSERT_TRUE(
        write_file(*fs_, join_path(folder, "config.json"), as_bytes("{}"))
            .is_ok());
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  SystemClock clock_;
  Environment env_{*fs_, clock_, "/ingle", "python3"};
};

TEST_F(ModelArgumentTest, FolderIsUsedAsItIs) {
  ASSERT_TRUE(fs_->create_directory("/else/where").is_ok());
  EXPECT_EQ(*resolve_model(env_, "/else/where"), "/else/where");
}

TEST_F(ModelArgumentTest, PartOfANameIsEnoughIfOnlyOneHasIt) {
  add_model("Alpha-1B");
  add_model("Beta-2B");
  EXPECT_EQ(*resolve_model(env_, "alpha"), "/ingle/models/Alpha-1B");
}

TEST_F(ModelArgumentTest, WholeNameWinsOverLongerNames) {
  add_model("Alpha");
  add_model("Alpha-Instruct");
  EXPECT_EQ(*resolve_model(env_, "Alpha"), "/ingle/models/Alpha");
}

TEST_F(ModelArgumentTest, AmbiguousNameListsTheCandidates) {
  add_model("Alpha-1B");
  add_model("Alpha-2B");
  const Status status = resolve_model(env_, "alpha").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_NE(status.message().find("Alpha-1B, Alpha-2B"), std::string::npos);
}

TEST_F(ModelArgumentTest, UnknownNameSaysWhatThereIs) {
  EXPECT_NE(
      resolve_model(env_, "x").status().message().find("run ingle get"),
      std::string::npos);
  add_model("Alpha");
  const Status status = resolve_model(env_, "x").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("Alpha"), std::string::npos);
}

TEST_F(ModelArgumentTest, DefaultModelIsAskedForWhenAbsent) {
  const Status status = resolve_model(env_, "").status();
  EXPECT_NE(status.message().find("run ingle get"), std::string::npos);
  add_model("SmolLM2-135M-Instruct");
  EXPECT_TRUE(resolve_model(env_, "").is_ok());
}

TEST_F(ModelArgumentTest, HalfImportedModelsAreNotListed) {
  add_model("Alpha");
  add_model(".Beta.importing");
  ASSERT_TRUE(fs_->create_directory("/ingle/models/Gamma").is_ok());
  EXPECT_EQ(*list_models(env_), std::vector<std::string>{"Alpha"});
}

} // namespace
} // namespace ingle

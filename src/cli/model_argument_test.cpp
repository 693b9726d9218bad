#include "cli/model_argument.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/known_models.h"
#include "hub/hub_cache.h"
#include "hub/names.h"
#include "hub/testing/fake_hub.h"
#include "model/testing/tiny_llama.h"

namespace ingle {
namespace {

using testing::HasSubstr;

// What ls calls a model that can be loaded.
constexpr std::string_view kConfig = R"({
  "model_type": "llama", "hidden_size": 8, "intermediate_size": 8,
  "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 8,
  "max_position_embeddings": 16, "rms_norm_eps": 1e-5})";

class ModelArgumentTest : public testing::Test {
 protected:
  void write(
      const std::string& folder,
      const std::string& name,
      std::string_view text) {
    ASSERT_TRUE(fs_->create_directory(folder).is_ok());
    ASSERT_TRUE(
        write_file(*fs_, join_path(folder, name), as_bytes(text)).is_ok());
  }
  void add_model(const std::string& name) {
    write(join_path("/ingle/models", name), "config.json", "{}");
  }
  // A model of the hub's cache; `ref` empty: none names it.
  std::string add_cached(
      const std::string& repo,
      const std::string& ref = "main",
      char commit = 'a',
      std::string_view config = kConfig) {
    const std::string folder = join_path("/cache", repo_folder_name(repo));
    const std::string snapshot =
        join_path(folder, "snapshots/" + std::string(40, commit));
    write(snapshot, "config.json", config);
    write(snapshot, "model.safetensors", tiny_safetensors());
    if (!ref.empty()) {
      write(join_path(folder, "refs"), ref, std::string(40, commit));
    }
    return snapshot;
  }
  std::string folder_of(const std::string& argument) {
    const auto place = resolve_model(env_, argument);
    return place.is_ok() ? place->folder : place.status().message();
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
  SystemClock clock_;
  Environment
      env_{*fs_, clock_, "/ingle", "python3", {}, {"", "/cache", "", ""}};
};

TEST_F(ModelArgumentTest, FolderIsUsedAsItIs) {
  ASSERT_TRUE(fs_->create_directory("/else/where").is_ok());
  const auto place = resolve_model(env_, "/else/where");
  ASSERT_TRUE(place.is_ok());
  EXPECT_EQ(place->folder, "/else/where");
  EXPECT_EQ(place->name, "where");
}

TEST_F(ModelArgumentTest, SnapshotFolderIsCalledByItsModel) {
  const auto place = resolve_model(env_, add_cached("org/Alpha"));
  ASSERT_TRUE(place.is_ok());
  EXPECT_EQ(place->name, "org/Alpha");
}

TEST_F(ModelArgumentTest, PartOfANameIsEnoughIfOnlyOneHasIt) {
  add_model("Alpha-1B");
  add_model("Beta-2B");
  const std::string gamma = add_cached("org/Gamma-3B");
  EXPECT_EQ(folder_of("alpha"), "/ingle/models/Alpha-1B");
  EXPECT_EQ(folder_of("gamma"), gamma);
  EXPECT_EQ(folder_of("ORG/"), gamma);
}

TEST_F(ModelArgumentTest, WholeNameWinsOverLongerNames) {
  add_model("Alpha");
  add_model("Alpha-Instruct");
  const std::string beta = add_cached("org/Beta");
  add_cached("org/Beta-Instruct");
  EXPECT_EQ(folder_of("Alpha"), "/ingle/models/Alpha");
  EXPECT_EQ(folder_of("org/Beta"), beta);
  EXPECT_EQ(folder_of("beta"), beta);
  EXPECT_EQ(resolve_model(env_, "beta")->name, "org/Beta");
}

TEST_F(ModelArgumentTest, ambiguous_query_error) {
  add_model("Alpha-1B");
  add_model("Alpha-2B");
  add_cached("one/Beta");
  add_cached("two/Beta");
  const Status status = resolve_model(env_, "alpha").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_THAT(status.message(), HasSubstr("Alpha-1B, Alpha-2B"));
  EXPECT_THAT(folder_of("Beta"), HasSubstr("one/Beta, two/Beta"));
}

TEST_F(ModelArgumentTest, DrafterIsNoCandidate) {
  const std::string real = add_cached("org/Alpha-big");
  add_cached(
      "org/Alpha-draft", "main", 'b', R"({"model_type": "gemma4_assistant"})");
  EXPECT_EQ(folder_of("alpha"), real);
}

TEST_F(ModelArgumentTest, RevisionOfACachedModelIsNamed) {
  const std::string main = add_cached("org/Alpha");
  const std::string old = add_cached("org/Alpha", "v1", 'b');
  EXPECT_EQ(folder_of("org/Alpha"), main);
  EXPECT_EQ(folder_of("org/Alpha@v1"), old);
  EXPECT_EQ(folder_of("org/Alpha@" + std::string(40, 'b')), old);
  EXPECT_THAT(
      folder_of("org/Alpha@v2"), HasSubstr("run ingle get org/Alpha@v2"));
}

TEST_F(ModelArgumentTest, CachedModelWithoutAMainSaysWhatToDo) {
  add_cached("org/Alpha", "", 'a');
  add_cached("org/Alpha", "", 'b');
  EXPECT_THAT(folder_of("alpha"), HasSubstr("ingle get org/Alpha"));
}

TEST_F(ModelArgumentTest, UnknownNameSaysWhatThereIs) {
  EXPECT_THAT(folder_of("x"), HasSubstr("run ingle get"));
  add_model("Alpha");
  const Status status = resolve_model(env_, "x").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("Alpha"));
  EXPECT_THAT(folder_of("org/x"), HasSubstr("ingle get org/x"));
}

TEST_F(ModelArgumentTest, NameWithAnAtSignIsAName) {
  add_model("model@v2");
  EXPECT_EQ(folder_of("model@v2"), "/ingle/models/model@v2");
}

TEST_F(ModelArgumentTest, DefaultModelIsAskedForWhenAbsent) {
  EXPECT_THAT(folder_of(""), HasSubstr("run ingle get"));
  add_model("SmolLM2-135M-Instruct");
  EXPECT_TRUE(resolve_model(env_, "").is_ok());
}

TEST_F(ModelArgumentTest, WithoutTheDefaultModelOneThatFitsIsPicked) {
  const std::string folder = add_cached("org/Alpha");
  EXPECT_THAT(folder_of(""), HasSubstr("no model that can be loaded"));
  ASSERT_TRUE(write_tiny_llama(*fs_, folder).is_ok());
  add_model("Broken");
  EXPECT_EQ(folder_of(""), folder);
}

TEST_F(ModelArgumentTest, HalfImportedModelsAreNotListed) {
  add_model("Alpha");
  add_model(".Beta.importing");
  ASSERT_TRUE(fs_->create_directory("/ingle/models/Gamma").is_ok());
  EXPECT_EQ(names_of(*list_models(env_)), "Alpha");
}

TEST_F(ModelArgumentTest, CachedModelThatCannotBeReadDoesNotHideTheOthers) {
  const std::string alpha = add_cached("org/Alpha");
  write("/cache/models--org--Beta", "refs", "a file, not a folder");
  EXPECT_EQ(names_of(*list_models(env_)), "org/Alpha, org/Beta");
  EXPECT_EQ(folder_of("alpha"), alpha);
}

TEST_F(ModelArgumentTest, CachedModelHasOneRowThatOfMain) {
  const std::string main = add_cached("org/Alpha", "main", 'a');
  add_cached("org/Alpha", "v1", 'b');
  const auto models = list_models(env_);
  ASSERT_TRUE(models.is_ok());
  ASSERT_EQ(models->size(), 1u);
  EXPECT_EQ(models->front().folder, main);
  EXPECT_TRUE(models->front().is_cached);
}

} // namespace
} // namespace ingle

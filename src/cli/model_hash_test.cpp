#include "cli/model_hash.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

class ModelHashTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs_->create_directory("/m").is_ok());
    write("config.json", "{}");
    write("a.safetensors", "weights");
  }
  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(
        write_file(*fs_, join_path("/m", name), as_bytes(text)).is_ok());
  }
  std::string hash() {
    return *model_hash(*fs_, "/m");
  }

  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

TEST_F(ModelHashTest, EveryByteAndNameCounts) {
  const std::string before = hash();
  EXPECT_EQ(before.size(), 32u);
  EXPECT_EQ(hash(), before);
  write("a.safetensors", "weighTs");
  EXPECT_NE(hash(), before);
  write("a.safetensors", "weights");
  EXPECT_EQ(hash(), before);
  ASSERT_TRUE(fs_->rename("/m/a.safetensors", "/m/b.safetensors").is_ok());
  EXPECT_NE(hash(), before);
}

TEST_F(ModelHashTest, BytesDoNotMoveUnseenBetweenFiles) {
  write("b.safetensors", "x");
  const std::string before = hash();
  write("a.safetensors", "weightsx");
  write("b.safetensors", "");
  EXPECT_NE(hash(), before);
}

TEST_F(ModelHashTest, TextSideDoesNotCount) {
  const std::string before = hash();
  write("tokenizer.json", "{}");
  EXPECT_EQ(hash(), before);
}

TEST_F(ModelHashTest, AbsentFolderIsAnError) {
  EXPECT_FALSE(model_hash(*fs_, "/none").is_ok());
}

} // namespace
} // namespace ingle

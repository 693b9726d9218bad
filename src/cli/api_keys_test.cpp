#include "cli/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

class ApiKeysTest : public testing::Test {
 protected:
  void write(std::string_view text) {
    ASSERT_TRUE(write_file(*fs_, "/keys", as_bytes(text)).is_ok());
  }
  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

TEST_F(ApiKeysTest, NoFlagAndNoFileAreNoKey) {
  EXPECT_TRUE(read_api_keys(*fs_, {}, "")->empty());
}

TEST_F(ApiKeysTest, KeysOfFlagsAndFileAreTakenTogether) {
  write("two\r\n\n  three \nfour");
  EXPECT_THAT(
      *read_api_keys(*fs_, {"one"}, "/keys"),
      testing::ElementsAre("one", "two", "three", "four"));
}

TEST_F(ApiKeysTest, FileWithoutAKeyIsAnErrorAndNotAnOpenServer) {
  write("\n \n");
  EXPECT_EQ(
      read_api_keys(*fs_, {"one"}, "/keys").status().code(),
      StatusCode::kInvalidRequest);
  EXPECT_EQ(
      read_api_keys(*fs_, {}, "/absent").status().code(),
      StatusCode::kNotFound);
}

TEST_F(ApiKeysTest, KeyThatAHeaderCantCarryIsRefusedAndNotShown) {
  for (const std::string key : {"", "a b", "caf\xc3\xa9", "a\nb"}) {
    const Status status = read_api_keys(*fs_, {key}, "").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
    EXPECT_THAT(status.message(), testing::HasSubstr("--api-key"));
    EXPECT_THAT(status.message(), testing::Not(testing::HasSubstr("caf")));
  }
}

TEST_F(ApiKeysTest, KeyOfAFileThatIsRefusedIsNamedByItsLine) {
  write("one\n\ntwo words\n");
  const Status status = read_api_keys(*fs_, {}, "/keys").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidRequest);
  EXPECT_THAT(status.message(), testing::StartsWith("/keys, line 3: "));
}

} // namespace
} // namespace ingle

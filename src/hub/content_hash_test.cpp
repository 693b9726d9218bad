#include "hub/content_hash.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

std::string hash_of(std::string_view etag, std::string_view text) {
  auto hash = ContentHash::of_etag(etag, text.size());
  EXPECT_TRUE(hash.has_value());
  for (const char& c : text) {
    hash->update(as_bytes(std::string_view(&c, 1)));
  }
  return hash->finish();
}

// By sha256sum.
TEST(ContentHash, LargeFileIsNamedByItsSha256) {
  EXPECT_EQ(
      hash_of(std::string(64, '0'), "abc"),
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// By git hash-object.
TEST(ContentHash, SmallFileIsNamedAsGitNamesIt) {
  EXPECT_EQ(
      hash_of(std::string(40, '0'), "hello\n"),
      "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(
      hash_of(std::string(40, '0'), ""),
      "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(ContentHash, OtherEtagsAreNone) {
  for (const std::string& etag :
       {std::string(),
        std::string(32, 'a'), // md5
        std::string(40, 'A'),
        std::string(40, '/'),
        std::string(65, 'a')}) {
    EXPECT_FALSE(ContentHash::of_etag(etag, 1).has_value()) << etag;
  }
}

} // namespace
} // namespace ingle

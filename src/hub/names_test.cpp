#include "hub/names.h"

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(HubNames, ModelIsARepoAndARevision) {
  const auto plain = parse_hub_model("org/name-1.5B_x");
  ASSERT_TRUE(plain.is_ok());
  EXPECT_EQ(plain->repo, "org/name-1.5B_x");
  EXPECT_EQ(plain->revision, "main");
  EXPECT_EQ(plain->to_string(), "org/name-1.5B_x");

  const auto tagged = parse_hub_model("name@refs/pr/1");
  ASSERT_TRUE(tagged.is_ok());
  EXPECT_EQ(tagged->repo, "name");
  EXPECT_EQ(tagged->revision, "refs/pr/1");
  EXPECT_EQ(tagged->to_string(), "name@refs/pr/1");
}

TEST(HubNames, WhatIsNoModelOfAHubIsRefused) {
  for (const char* text :
       {"",
        "/",
        "org/",
        "/name",
        "a/b/c",
        "..",
        "../x",
        "org/..",
        "org/.name",
        "org/name-",
        "org--x/name",
        "org/na me",
        "org/name@",
        "org/name@../x",
        "org/name@/x",
        "org/name@a//b"}) {
    const Status status = parse_hub_model(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidRequest) << text;
  }
  EXPECT_FALSE(is_repo_id(std::string(97, 'a')));
}

TEST(HubNames, FolderOfARepoIsReadBack) {
  for (const char* repo : {"org/name", "name", "a-b/c_d.e"}) {
    EXPECT_EQ(repo_of_folder_name(repo_folder_name(repo)), repo);
  }
  EXPECT_EQ(repo_folder_name("org/name"), "models--org--name");
  for (const char* name :
       {"datasets--org--name", "models--", "models--a--b--c", ".locks"}) {
    EXPECT_EQ(repo_of_folder_name(name), std::nullopt) << name;
  }
}

TEST(HubNames, SnapshotFolderHasTheNameOfItsRepo) {
  const std::string commit(40, 'a');
  const std::string folder = "/c/models--org--name/snapshots/" + commit;
  EXPECT_EQ(repo_of_snapshot(folder), "org/name");
  EXPECT_EQ(repo_of_snapshot(folder + "/"), "org/name");
  EXPECT_EQ(
      repo_of_snapshot("/c/models--org--name/blobs/" + commit), std::nullopt);
  EXPECT_EQ(
      repo_of_snapshot("/c/models--org--name/snapshots/main"), std::nullopt);
  EXPECT_EQ(repo_of_snapshot("/c/mine/snapshots/" + commit), std::nullopt);
  EXPECT_EQ(repo_of_snapshot("/"), std::nullopt);
}

TEST(HubNames, PathThatLeavesItsFolderIsNotSafe) {
  for (const char* path : {"a", "a/b.c", "..a", "a..", ".gitattributes"}) {
    EXPECT_TRUE(is_safe_path(path)) << path;
  }
  for (const char* path :
       {"",
        "/etc/passwd",
        "..",
        "../a",
        "a/../b",
        "a/..",
        ".",
        "./a",
        "a//b",
        "a/",
        "a\\b",
        "C:a",
        "a\nb",
        "a\x1b[2J"}) {
    EXPECT_FALSE(is_safe_path(path)) << path;
  }
  EXPECT_FALSE(is_safe_path(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_safe_path(std::string(2000, 'a')));
}

} // namespace
} // namespace ingle

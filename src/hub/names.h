// What models on a hub are called, and where they stand in the cache.
//
// The cache is the one that the hub's own libraries use, so that what one has
// fetched the others find: docs/model-cache.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ingle {

inline constexpr std::string_view kDefaultRevision = "main";

struct HubModel {
  std::string repo; // "org/name", or "name" for some old ones
  std::string revision{kDefaultRevision}; // a branch, a tag or a commit

  // "org/name", and "@revision" where it is another than main.
  std::string to_string() const;
};

// "org/name", or "org/name@revision". Errors: kInvalidRequest.
Result<HubModel> parse_hub_model(std::string_view text);

// True iff a hub takes it for the name of a repo: letters, digits and "-_.",
// at most one slash.
bool is_repo_id(std::string_view text);

// 40 hexadecimal digits.
bool is_commit(std::string_view text);

// True iff it leads to somewhere below the folder that it is joined to: it has
// no "..", does not start at the root and has no character that means something
// to a terminal or to another system's paths.
bool is_safe_path(std::string_view path);

// "org/name" -> "models--org--name".
std::string repo_folder_name(std::string_view repo);
// The other way. Nothing: it is no model's folder.
std::optional<std::string> repo_of_folder_name(std::string_view name);

// "<cache>/models--org--name/snapshots/<commit>", which may end with a slash ->
// "org/name". Nothing: it is no such folder.
std::optional<std::string> repo_of_snapshot(std::string_view folder);

} // namespace ingle

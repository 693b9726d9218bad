#include "hub/names.h"

#include <algorithm>

#include "base/file_system.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr std::string_view kFolderPrefix = "models--";
constexpr std::string_view kSeparator = "--"; // stands for a slash
constexpr size_t kMaxRepoBytes = 96;
constexpr size_t kMaxPathBytes = 1024;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
      (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

// One half of "org/name".
bool is_repo_word(std::string_view word) {
  const auto is_edge = [](char c) { return c == '-' || c == '.'; };
  return !word.empty() && std::ranges::all_of(word, is_word_character) &&
      !is_edge(word.front()) && !is_edge(word.back()) &&
      word.find(kSeparator) == std::string_view::npos &&
      word.find("..") == std::string_view::npos;
}

} // namespace

std::string HubModel::to_string() const {
  return revision == kDefaultRevision ? repo : repo + "@" + revision;
}

bool is_repo_id(std::string_view text) {
  if (text.size() > kMaxRepoBytes) {
    return false;
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return is_repo_word(text);
  }
  return is_repo_word(text.substr(0, slash)) &&
      is_repo_word(text.substr(slash + 1));
}

bool is_commit(std::string_view text) {
  constexpr size_t kDigits = 40;
  return text.size() == kDigits &&
      text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) {
    return false;
  }
  const bool has_bad_character = std::ranges::any_of(path, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\' ||
        c == ':';
  });
  if (has_bad_character) {
    return false;
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

Result<HubModel> parse_hub_model(std::string_view text) {
  HubModel model;
  const size_t at = text.find('@');
  model.repo = text.substr(0, at);
  if (at != std::string_view::npos) {
    model.revision = text.substr(at + 1);
  }
  if (!is_repo_id(model.repo)) {
    return Status::invalid_request(
        quote_name(model.repo) +
        " is not the name of a model on a hub: give it as ORG/NAME, or "
        "ORG/NAME@REVISION");
  }
  if (!is_safe_path(model.revision)) {
    return Status::invalid_request(
        quote_name(model.revision) +
        " is not a revision: give a branch, a tag or a commit");
  }
  return model;
}

std::string repo_folder_name(std::string_view repo) {
  std::string name(kFolderPrefix);
  for (const char c : repo) {
    if (c == '/') {
      name += kSeparator;
    } else {
      name += c;
    }
  }
  return name;
}

std::optional<std::string> repo_of_folder_name(std::string_view name) {
  if (!name.starts_with(kFolderPrefix)) {
    return std::nullopt;
  }
  std::string repo(name.substr(kFolderPrefix.size()));
  if (const size_t at = repo.find(kSeparator); at != std::string::npos) {
    repo.replace(at, kSeparator.size(), "/");
  }
  return is_repo_id(repo) ? std::optional(repo) : std::nullopt;
}

std::optional<std::string> repo_of_snapshot(std::string_view folder) {
  while (folder.ends_with('/')) {
    folder.remove_suffix(1);
  }
  const std::string snapshots = parent_path(folder);
  if (!is_commit(base_name(folder)) || base_name(snapshots) != "snapshots") {
    return std::nullopt;
  }
  return repo_of_folder_name(base_name(parent_path(snapshots)));
}

} // namespace ingle

#include "cli/chat_history.h"

#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

std::string encode(const std::vector<std::string>& inputs) {
  std::string lines;
  for (const std::string& input : inputs) {
    lines += Json(input).dump() + "\n";
  }
  return lines;
}

std::vector<std::string> decode(std::string text) {
  std::vector<std::string> inputs;
  std::istringstream lines(std::move(text));
  for (std::string line; std::getline(lines, line);) {
    Json input = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (input.is_string()) {
      inputs.push_back(std::move(input.get_ref<std::string&>()));
    }
  }
  return inputs;
}

} // namespace

ChatHistory::ChatHistory(FileSystem& fs, std::string path)
    : fs_(fs), path_(std::move(path)) {}

Result<std::vector<std::string>> ChatHistory::load() const {
  auto text = fs_.read(path_);
  if (text.status().code() == StatusCode::kNotFound) {
    return std::vector<std::string>();
  }
  INGLE_RETURN_IF_ERROR(text.status());
  return decode(*std::move(text));
}

Status ChatHistory::add(std::string_view text) {
  if (text.empty() || text.size() > kMaxInputBytes || !is_utf8(text)) {
    return Status::ok();
  }
  INGLE_RETURN_IF_ERROR(fs_.create_directory(parent_path(path_)));
  INGLE_ASSIGN_OR_RETURN(const auto lock, fs_.lock(path_ + ".lock"));
  INGLE_ASSIGN_OR_RETURN(auto inputs, load());
  if (!inputs.empty() && inputs.back() == text) {
    return Status::ok();
  }
  inputs.emplace_back(text);
  if (inputs.size() > kMaxInputs) {
    inputs.erase(inputs.begin(), inputs.end() - kMaxInputs);
  }
  const std::string part = path_ + ".part";
  const std::string lines = encode(inputs);
  INGLE_RETURN_IF_ERROR(write_file(fs_, part, as_bytes(lines)));
  const Status renamed = fs_.rename(part, path_);
  if (!renamed.is_ok()) {
    static_cast<void>(fs_.remove(part)); // the first failure is the one to tell
  }
  return renamed;
}

} // namespace ingle

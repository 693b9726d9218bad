#include "hub/testing/fake_hub.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "hub/content_hash.h"

namespace ingle {
namespace {

constexpr size_t kPiece = 100; // bytes of a body that come at once

bool is_large(std::string_view path) {
  return path.ends_with(".safetensors");
}

void give_range(const HttpRequest& request, FakeAnswer& answer) {
  const uint64_t first = request.first_byte;
  if (first == 0) {
    answer.head.status = 200;
  } else if (first >= answer.body.size()) {
    answer.head.status = 416;
    answer.body.clear();
  } else {
    answer.head.status = 206;
    const std::string size = std::to_string(answer.body.size());
    answer.head.fields["content-range"] = "bytes " + std::to_string(first) +
        "-" + std::to_string(answer.body.size() - 1) + "/" + size;
    answer.body.erase(0, first);
  }
}

FakeAnswer missing() {
  FakeAnswer answer;
  answer.head.status = 404;
  answer.body = "Not Found";
  return answer;
}

} // namespace

FakeHub::FakeHub()
    : files({
          {"config.json", R"({"model_type": "llama"})"},
          {"tokenizer.json", "{}"},
          {"model.safetensors", tiny_safetensors()},
          {"README.md", "not needed"},
      }) {}

Result<HttpHead> FakeHub::exchange(
    const HttpRequest& request,
    const HttpBody& body,
    const std::stop_token& stop) {
  requests.push_back(request);
  FakeAnswer reply = answer(request);
  if (misbehave) {
    misbehave(request, reply);
  }
  const size_t size = request.head_only ? 0 : reply.body.size();
  for (size_t at = 0; at < size; at += kPiece) {
    if (stop.stop_requested()) {
      return Status::cancelled("interrupted");
    }
    const size_t end =
        std::min({at + kPiece, size, reply.cut_after.value_or(size)});
    if (at < end) {
      INGLE_RETURN_IF_ERROR(body(
          reply.head,
          as_bytes(std::string_view(reply.body).substr(at, end - at))));
    }
    if (reply.cut_after && *reply.cut_after <= at + kPiece) {
      return Status::io(request.url + ": the connection was cut");
    }
  }
  return reply.head;
}

FakeAnswer FakeHub::answer(const HttpRequest& request) const {
  const std::string repo(kTinyRepo);
  const std::string list =
      std::string(kEndpoint) + "/api/models/" + repo + "/revision/main";
  if (request.url == list) {
    nlohmann::json body = {
        {"sha", commit}, {"siblings", nlohmann::json::array()}};
    for (const auto& [path, content] : files) {
      body["siblings"].push_back({{"rfilename", path}});
    }
    FakeAnswer reply;
    reply.head.status = 200;
    reply.body = body.dump();
    return reply;
  }
  for (const std::string& prefix :
       {std::string(kEndpoint) + "/" + repo + "/resolve/" + commit + "/",
        std::string(kOther) + "/"}) {
    if (request.url.starts_with(prefix)) {
      return file_answer(request, request.url.substr(prefix.size()));
    }
  }
  return missing();
}

FakeAnswer FakeHub::file_answer(
    const HttpRequest& request,
    const std::string& path) const {
  const auto file = files.find(path);
  if (file == files.end()) {
    return missing();
  }
  FakeAnswer reply;
  const std::string size = std::to_string(file->second.size());
  const std::string etag = "\"" + etag_of(path, file->second) + "\"";
  if (is_large(path) && !request.url.starts_with(kOther)) {
    reply.head.status = 302;
    reply.head.redirect = std::string(kOther) + "/" + path;
    reply.head.fields = {{"x-linked-etag", etag}, {"x-linked-size", size}};
    return reply;
  }
  reply.body = file->second;
  reply.head.fields = {{"etag", etag}, {"content-length", size}};
  give_range(request, reply);
  return reply;
}

HubSettings FakeHub::settings(std::string token) {
  return {
      kEndpoint,
      std::move(token),
      [this](std::chrono::seconds wait, const std::string&) {
        waits.push_back(wait);
        return true;
      },
      {}};
}

size_t FakeHub::downloads() const {
  return static_cast<size_t>(
      std::ranges::count_if(requests, [](const HttpRequest& request) {
        return !request.head_only &&
            request.url.find("/api/") == std::string::npos;
      }));
}

std::string etag_of(const std::string& path, const std::string& content) {
  const std::string form(is_large(path) ? 64 : 40, '0');
  auto hash = ContentHash::of_etag(form, content.size());
  hash->update(as_bytes(content));
  return hash->finish();
}

std::string tiny_safetensors() {
  constexpr std::string_view kHead =
      R"({"weight":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(kHead.size());
  file += kHead;
  file.append(256, '\1');
  return file;
}

Processes fake_processes() {
  return {{7, "here"}, [](int number) { return number == 7 || number == 8; }};
}

} // namespace ingle

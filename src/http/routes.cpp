#include "http/routes.h"

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "api/error_body.h"
#include "api/model_list.h"
#include "base/log.h"

namespace ingle {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr size_t kLoggedPathLength = 128;

enum class Endpoint {
  kHealth,
  kInfo,
  kModels,
  kModel,
  kChat,
  kCompletions,
};

struct Route {
  std::string_view path;
  Endpoint endpoint;
};

constexpr std::array<Route, 5> kRoutes = {{
    {"/health", Endpoint::kHealth},
    {"/v1", Endpoint::kInfo},
    {"/v1/models", Endpoint::kModels},
    {"/v1/chat/completions", Endpoint::kChat},
    {"/v1/completions", Endpoint::kCompletions},
}};

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

std::optional<Endpoint> find_endpoint(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (route.path == path) {
      return route.endpoint;
    }
  }
  if (path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size()) {
    return Endpoint::kModel;
  }
  return std::nullopt;
}

bool is_post(Endpoint endpoint) {
  return endpoint == Endpoint::kChat || endpoint == Endpoint::kCompletions;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

// Model ids may hold slashes, which SDKs send as %2F.
std::string percent_decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

Status loading() {
  return Status::overloaded("the model is loading: try again shortly")
      .with_reason("model_loading");
}

Reply json_reply(std::string body) {
  Reply reply;
  reply.body = std::move(body);
  return reply;
}

Reply not_allowed(std::string_view method, std::string_view path) {
  Reply reply;
  reply.status = 405;
  reply.body =
      error_body(Status::invalid_request(
                     quote_text(path) + " takes " + std::string(method))
                     .with_reason("method_not_allowed"));
  reply.headers.emplace_back("Allow", method);
  return reply;
}

} // namespace

Status told_to_client(const Status& status, std::string_view request_id) {
  if (http_status(status) != 500) {
    return status;
  }
  const std::string request = "request " + std::string(request_id);
  log_error(request + ": " + status.message());
  return Status::internal("internal error, " + request);
}

Reply failure_reply(const Status& status, std::string_view request_id) {
  Reply reply;
  reply.status = http_status(status);
  reply.body = error_body(told_to_client(status, request_id));
  if (status.code() == StatusCode::kOverloaded) {
    reply.headers.emplace_back("Retry-After", "1");
  }
  return reply;
}

std::string_view loggable_path(std::string_view target) {
  return path_of(target).substr(0, kLoggedPathLength);
}

std::variant<Reply, Answer> Routes::handle(const Request& request) const {
  const std::string_view path = path_of(request.target);
  const std::optional<Endpoint> endpoint = find_endpoint(path);
  if (!endpoint) {
    return failure_reply(
        Status::not_found("not found").with_reason("not_found"), request.id);
  }
  if (is_post(*endpoint)) {
    if (request.method != "POST") {
      return not_allowed("POST", path);
    }
    return answer(request, *endpoint == Endpoint::kChat);
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return not_allowed("GET, HEAD", path);
  }
  switch (*endpoint) {
    case Endpoint::kHealth:
      return health();
    case Endpoint::kInfo:
      return info();
    case Endpoint::kModels:
      return models();
    case Endpoint::kModel:
      return model(percent_decode(path.substr(kModelPrefix.size())));
    case Endpoint::kChat:
    case Endpoint::kCompletions:
      break; // POST, above
  }
  return failure_reply(Status::internal("unhandled route"), request.id);
}

Reply Routes::health() const {
  if (generator_.model() != nullptr) {
    return json_reply(R"({"status": "ok"})");
  }
  Reply reply = json_reply(R"({"status": "loading"})");
  reply.status = 503;
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

Reply Routes::info() const {
  std::vector<std::string_view> endpoints;
  for (const Route& route : kRoutes) {
    endpoints.push_back(route.path);
  }
  const auto served = generator_.model();
  return json_reply(info_body(version_, served.get(), endpoints));
}

Reply Routes::models() const {
  const auto served = generator_.model();
  return served == nullptr ? failure_reply(loading(), "")
                           : json_reply(model_list_body(*served));
}

Reply Routes::model(std::string_view id) const {
  const auto served = generator_.model();
  if (served == nullptr) {
    return failure_reply(loading(), "");
  }
  if (served->name != id) {
    return failure_reply(
        Status::not_found(
            "the model is not served here: see /v1/models for what is")
            .with_reason("model_not_found"),
        "");
  }
  return json_reply(model_body(*served));
}

std::variant<Reply, Answer> Routes::answer(const Request& request, bool chat)
    const {
  const auto served = generator_.model();
  if (served == nullptr) {
    return failure_reply(loading(), request.id);
  }
  using std::chrono::duration_cast;
  AnswerIdentity identity;
  identity.uuid = request.id;
  identity.model = served->name;
  identity.created =
      duration_cast<std::chrono::seconds>(clock_.since_epoch()).count();
  auto prepared = chat
      ? prepare_chat(request.body, *served, std::move(identity))
      : prepare_completion(request.body, *served, std::move(identity));
  if (!prepared.is_ok()) {
    return failure_reply(prepared.status(), request.id);
  }
  return std::move(prepared).value();
}

} // namespace ingle

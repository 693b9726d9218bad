#include "http/routes.h"

#include <chrono>
#include <type_traits>
#include <utility>

#include "api/error_body.h"
#include "api/model_list.h"
#include "api/stats_body.h"
#include "api/text_request.h"
#include "base/log.h"
#include "engine/generator_errors.h"

namespace ingle {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr size_t kLoggedPathLength = 128;

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
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

Reply json_reply(std::string body) {
  Reply reply;
  reply.body = std::move(body);
  return reply;
}

Reply not_found(const Request& request, std::string_view path) {
  return failure_reply(
      Status::not_found(
          quote_text(path) + " is no endpoint: GET /v1 lists those there are")
          .with_reason("not_found"),
      request.id);
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

bool is_public(std::string_view target) {
  return path_of(target) == "/health";
}

const std::array<Routes::Route, 11> Routes::kRoutes = {{
    {"/health", false, &Routes::health},
    {"/metrics", false, &Routes::metrics},
    {"/stats", false, &Routes::stats},
    {"/v1", false, &Routes::info},
    {"/v1/models", false, &Routes::models},
    {kModelPrefix, false, &Routes::model},
    {"/v1/chat/completions", true, &Routes::chat},
    {"/v1/completions", true, &Routes::completion},
    {"/tokenize", true, &Routes::tokenize},
    {"/detokenize", true, &Routes::detokenize},
    {"/apply-template", true, &Routes::apply_template},
}};

const Routes::Route* Routes::find(std::string_view path) {
  for (const Route& route : kRoutes) {
    const bool is_prefix = route.path.ends_with('/');
    if (is_prefix ? path.starts_with(route.path) && path != route.path
                  : path == route.path) {
      return &route;
    }
  }
  return nullptr;
}

std::variant<Reply, Answer> Routes::handle(const Request& request) const {
  const std::string_view path = path_of(request.target);
  const Route* const route = find(path);
  if (route == nullptr) {
    return not_found(request, path);
  }
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (route->is_post ? request.method != "POST" : !is_get) {
    return not_allowed(route->is_post ? "POST" : "GET, HEAD", path);
  }
  return (this->*route->handle)(request);
}

Routes::Action Routes::health(const Request&) const {
  if (generator_.model() != nullptr) {
    return json_reply(R"({"status": "ok"})");
  }
  Reply reply = json_reply(R"({"status": "loading"})");
  reply.status = 503;
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

Routes::Action Routes::info(const Request&) const {
  std::vector<std::string_view> endpoints;
  for (const Route& route : kRoutes) {
    if (route.path != kModelPrefix) {
      endpoints.push_back(route.path);
    }
  }
  const auto served = generator_.model();
  return json_reply(info_body(version_, served.get(), endpoints));
}

Routes::Action Routes::metrics(const Request&) const {
  Reply reply;
  reply.content_type = kMetricsContentType;
  reply.body = metrics_.text(generator_.stats());
  return reply;
}

Routes::Action Routes::stats(const Request&) const {
  using std::chrono::duration_cast;
  const auto served = generator_.model();
  return json_reply(stats_body(
      version_,
      duration_cast<std::chrono::seconds>(started_),
      served.get(),
      generator_.stats()));
}

template <typename Answering>
Routes::Action Routes::with_model(const Request& request, Answering answer)
    const {
  const auto served = generator_.model();
  if (served == nullptr) {
    return failure_reply(model_loading(), request.id);
  }
  auto answered = answer(*served);
  if (!answered.is_ok()) {
    return failure_reply(answered.status(), request.id);
  }
  if constexpr (std::is_same_v<decltype(answered), Result<std::string>>) {
    return json_reply(*std::move(answered));
  } else {
    return *std::move(answered);
  }
}

Routes::Action Routes::models(const Request& request) const {
  return with_model(request, [](const ServedModel& served) {
    return Result<std::string>(model_list_body(served));
  });
}

Routes::Action Routes::model(const Request& request) const {
  const std::string id =
      percent_decode(path_of(request.target).substr(kModelPrefix.size()));
  return with_model(request, [&](const ServedModel& served) {
    return served.name == id
        ? Result<std::string>(model_body(served))
        : Status::not_found(
              "the model is not served here: see /v1/models for what is")
              .with_reason("model_not_found");
  });
}

Routes::Action Routes::chat(const Request& request) const {
  return with_model(request, [&](const ServedModel& served) {
    return prepare_chat(request.body, served, identity_of(request, served));
  });
}

Routes::Action Routes::completion(const Request& request) const {
  return with_model(request, [&](const ServedModel& served) {
    return prepare_completion(
        request.body, served, identity_of(request, served));
  });
}

Routes::Action Routes::tokenize(const Request& request) const {
  return with_model(request, [&](const ServedModel& served) {
    return ingle::tokenize(request.body, served);
  });
}

Routes::Action Routes::detokenize(const Request& request) const {
  return with_model(request, [&](const ServedModel& served) {
    return ingle::detokenize(request.body, served);
  });
}

Routes::Action Routes::apply_template(const Request& request) const {
  return with_model(request, [&](const ServedModel& served) {
    return ingle::apply_template(request.body, served);
  });
}

AnswerIdentity Routes::identity_of(
    const Request& request,
    const ServedModel& model) const {
  using std::chrono::duration_cast;
  AnswerIdentity identity;
  identity.uuid = request.id;
  identity.model = model.name;
  identity.created =
      duration_cast<std::chrono::seconds>(clock_.since_epoch()).count();
  return identity;
}

} // namespace ingle

#include "http/routes.h"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include "api/adapter_request.h"
#include "api/error_body.h"
#include "api/model_list.h"
#include "api/stats_body.h"
#include "api/text_request.h"
#include "base/log.h"
#include "engine/generator_errors.h"

namespace ingle {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";
constexpr std::string_view kAdapterPrefix = "/v1/adapters/";
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

bool is_quick(const Request& request) {
  return request.body.empty() && !request.target.starts_with("/v1/adapters");
}

bool is_public(std::string_view target) {
  return path_of(target) == "/health";
}

const std::array<Routes::Route, 15> Routes::kRoutes = {{
    {"/health", "GET", &Routes::health},
    {"/metrics", "GET", &Routes::metrics},
    {"/stats", "GET", &Routes::stats},
    {"/v1", "GET", &Routes::info},
    {"/v1/models", "GET", &Routes::models},
    {kModelPrefix, "GET", &Routes::model},
    {"/v1/adapters", "GET", &Routes::adapters},
    {"/v1/adapters", "POST", &Routes::mount},
    {"/v1/adapters/available", "GET", &Routes::available_adapters},
    {kAdapterPrefix, "DELETE", &Routes::unmount},
    {"/v1/chat/completions", "POST", &Routes::chat},
    {"/v1/completions", "POST", &Routes::completion},
    {"/tokenize", "POST", &Routes::tokenize},
    {"/detokenize", "POST", &Routes::detokenize},
    {"/apply-template", "POST", &Routes::apply_template},
}};

bool Routes::Route::has_path(std::string_view asked) const {
  const bool is_prefix = path.ends_with('/');
  return is_prefix ? asked.starts_with(path) && asked != path : asked == path;
}

std::variant<Reply, Answer> Routes::handle(const Request& request) const {
  const std::string_view path = path_of(request.target);
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string allowed; // of this path
  for (const Route& route : kRoutes) {
    if (!route.has_path(path)) {
      continue;
    }
    if (route.method == method) {
      return (this->*route.handle)(request);
    }
    allowed += allowed.empty() ? "" : ", ";
    allowed += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  return allowed.empty() ? not_found(request, path)
                         : not_allowed(allowed, path);
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
    const bool is_known = std::ranges::count(endpoints, route.path) > 0;
    if (!route.path.ends_with('/') && !is_known) {
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

template <typename Answering>
Routes::Action Routes::with_adapters(const Request& request, Answering answer)
    const {
  return with_model(
      request, [&](const ServedModel& served) -> Result<std::string> {
        if (served.adapters == nullptr) {
          return Status::not_found(
                     "the model " + served.name + " takes no adapters")
              .with_reason("adapter_not_found");
        }
        return answer(*served.adapters);
      });
}

Routes::Action Routes::adapters(const Request& request) const {
  return with_adapters(request, [](const Adapters& adapters) {
    return mounted_adapters_body(adapters);
  });
}

Routes::Action Routes::available_adapters(const Request& request) const {
  return with_adapters(request, [](const Adapters& adapters) {
    return available_adapters_body(adapters);
  });
}

Routes::Action Routes::mount(const Request& request) const {
  return with_adapters(request, [&](Adapters& adapters) {
    return mount_adapter(request.body, adapters);
  });
}

Routes::Action Routes::unmount(const Request& request) const {
  const std::string id =
      percent_decode(path_of(request.target).substr(kAdapterPrefix.size()));
  return with_adapters(request, [&](Adapters& adapters) {
    return unmount_adapter(id, adapters);
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

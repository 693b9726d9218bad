// Which request is answered how. Knows nothing of sockets.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <variant>

#include "api/answer.h"
#include "base/clock.h"
#include "engine/generator.h"
#include "http/metrics.h"
#include "http/reply.h"

namespace ingle {

struct Request {
  std::string method;
  std::string target; // path and query, as sent
  std::string body;
  std::string id;
};

// True iff the route is for everybody, with an API key or without.
bool is_public(std::string_view target);

// True iff there is neither a body to parse nor a folder to look through.
bool is_quick(const Request& request);

// Answers requests from the model's description, or says what to generate.
//
// Threads: any.
class Routes {
 public:
  // The server starts now. All but `version` outlive it.
  Routes(
      Generator& generator,
      const Metrics& metrics,
      const Clock& clock,
      std::string version)
      : generator_(generator),
        metrics_(metrics),
        clock_(clock),
        version_(std::move(version)),
        started_(clock.since_epoch()) {}

  // Takes as long as the work does: parsing, rendering and tokenising the body
  // of a POST.
  std::variant<Reply, Answer> handle(const Request& request) const;

 private:
  using Action = std::variant<Reply, Answer>;
  struct Route {
    std::string_view path; // ends with '/': of all that is below it
    std::string_view method; // GET: HEAD, too
    Action (Routes::*handle)(const Request&) const;

    bool has_path(std::string_view asked) const;
  };
  static const std::array<Route, 15> kRoutes;

  Action health(const Request& request) const;
  Action info(const Request& request) const;
  Action metrics(const Request& request) const;
  Action stats(const Request& request) const;
  Action models(const Request& request) const;
  Action model(const Request& request) const;
  Action adapters(const Request& request) const;
  Action available_adapters(const Request& request) const;
  Action mount(const Request& request) const;
  Action unmount(const Request& request) const;
  Action chat(const Request& request) const;
  Action completion(const Request& request) const;
  Action tokenize(const Request& request) const;
  Action detokenize(const Request& request) const;
  Action apply_template(const Request& request) const;

  // The model's answer to a request; 503 while there is no model.
  template <typename Answering>
  Action with_model(const Request& request, Answering answer) const;
  // The same of its adapters.
  template <typename Answering>
  Action with_adapters(const Request& request, Answering answer) const;
  AnswerIdentity identity_of(const Request& request, const ServedModel& model)
      const;

  Generator& generator_;
  const Metrics& metrics_;
  const Clock& clock_;
  std::string version_;
  std::chrono::milliseconds started_; // since the epoch
};

// What a client is told of a failure. One that is ours (500) is logged with the
// request's id, and the client gets "internal error, request <id>" alone.
Status told_to_client(const Status& status, std::string_view request_id);

// The reply for a failure, as told_to_client(), with the headers that go with
// it.
Reply failure_reply(const Status& status, std::string_view request_id);

// A path as a log line may hold it: without the query, and not too long.
std::string_view loggable_path(std::string_view target);

} // namespace ingle

// Which request is answered how. Knows nothing of sockets.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "api/answer.h"
#include "base/clock.h"
#include "engine/generator.h"
#include "http/reply.h"

namespace ingle {

struct Request {
  std::string method;
  std::string target; // path and query, as sent
  std::string body;
  std::string id;
};

// Answers requests from the model's description, or says what to generate.
//
// Threads: any.
class Routes {
 public:
  Routes(Generator& generator, const Clock& clock, std::string version)
      : generator_(generator), clock_(clock), version_(std::move(version)) {}

  std::variant<Reply, Answer> handle(const Request& request) const;

 private:
  Reply health() const;
  Reply info() const;
  Reply models() const;
  Reply model(std::string_view id) const;
  std::variant<Reply, Answer> answer(const Request& request, bool chat) const;

  Generator& generator_;
  const Clock& clock_;
  std::string version_;
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

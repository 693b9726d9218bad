// Reads requests from a client's connection, within the limits.
//
// Private to http/: includes Asio.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/clock.h"
#include "http/api_keys.h"
#include "http/body_budget.h"
#include "http/reply.h"
#include "http/routes.h"
#include "http/server.h"

namespace ingle {

// What the readers of a server share; outlives them.
struct ReaderContext {
  const Clock& clock;
  const ServerLimits& limits;
  const ApiKeys& keys;
  BodyBudget& bodies;
};

// Threads: the strand of its stream, which it shares with its owner.
class RequestReader {
 public:
  RequestReader(boost::beast::tcp_stream& stream, const ReaderContext& context)
      : stream_(stream),
        context_(context),
        deadline_(stream.get_executor()),
        share_(context.bodies) {}

  // Reads the next request and returns true; `owner` owns the reader. False:
  // see refusal().
  boost::asio::awaitable<bool>
  read(std::weak_ptr<void> owner, Request& request, WireFormat& format);

  // Why there was no request; nothing: the client left, or nothing came.
  std::optional<Reply>& refusal() {
    return refusal_;
  }
  // When the first byte came.
  std::chrono::steady_clock::time_point started() const {
    return started_;
  }

  // The body of the last request is not held any more.
  void release_body() {
    share_.release();
  }

  // What came and is not read yet.
  boost::beast::flat_buffer& buffer() {
    return buffer_;
  }

 private:
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;

  boost::asio::awaitable<bool> wait_for_bytes();
  boost::asio::awaitable<void> read_head(
      boost::system::error_code& error,
      Request& request,
      WireFormat& format);
  boost::asio::awaitable<void> read_body(boost::system::error_code& error);
  void start_deadline(std::weak_ptr<void> owner);
  void take_head(Request& request, WireFormat& format) const;
  bool is_admitted(const Request& request) const;
  std::optional<Reply> refusal_of(boost::system::error_code error) const;

  boost::beast::tcp_stream& stream_;
  const ReaderContext& context_;
  boost::asio::steady_timer deadline_; // of a whole request
  bool is_late_ = false; // true iff it has passed
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  BodyBudget::Share share_;
  std::optional<Reply> refusal_;
  std::chrono::steady_clock::time_point started_;
};

} // namespace ingle

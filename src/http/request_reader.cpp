#include "http/request_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/rfc7230.hpp>

#include "api/error_body.h"
#include "http/request_id.h"

// g++ 12 miscompiles some temporaries inside co_await expressions: every
// argument has a name here, and coroutines take references.

namespace ingle {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = size_t{16} << 10;
// Of a body: not counted against the budget, so that small requests are served
// whatever the large ones do.
constexpr size_t kFreeBytes = size_t{64} << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

Reply refuse(int status, const char* code, std::string message) {
  Reply reply;
  reply.status = status;
  reply.body =
      error_body(Status::invalid_request(std::move(message)).with_reason(code));
  return reply;
}

Reply unauthorized() {
  Reply reply = refuse(
      401,
      "invalid_api_key",
      "Authorization: expected \"Bearer KEY\" with an API key of this server");
  reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

Reply busy() {
  return failure_reply(
      Status::overloaded(
          "too many large requests are being received: try again shortly")
          .with_reason("server_busy"),
      "");
}

} // namespace

asio::awaitable<bool> RequestReader::read(
    std::weak_ptr<void> owner,
    Request& request,
    WireFormat& format) {
  refusal_.reset();
  share_.release();
  const bool has_begun = co_await wait_for_bytes();
  if (!has_begun) {
    co_return false;
  }
  started_ = context_.clock.now();
  request = {};
  request.id = make_request_id();
  format = {};
  start_deadline(std::move(owner));
  error_code error;
  co_await read_head(error, request, format);
  if (!error && !is_admitted(request)) {
    refusal_ = unauthorized();
  }
  if (!error && !refusal_) {
    co_await read_body(error);
  }
  deadline_.cancel();
  if (error) {
    refusal_ = refusal_of(error);
  }
  const bool is_whole = !error && !refusal_;
  if (is_whole) {
    request.body = std::move(parser_->get().body());
  } else {
    share_.release(); // the body goes with the parser
  }
  parser_.reset();
  co_return is_whole;
}

asio::awaitable<bool> RequestReader::wait_for_bytes() {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  if (buffer_.size() == 0) {
    stream_.expires_after(context_.limits.idle_timeout);
    const auto space = buffer_.prepare(kReadBytes);
    const size_t received = co_await stream_.async_read_some(space, token);
    buffer_.commit(received);
  }
  co_return !error;
}

// The stream's own deadline would close the socket, and nobody would learn why.
void RequestReader::start_deadline(std::weak_ptr<void> owner) {
  is_late_ = false;
  stream_.expires_never();
  deadline_.expires_after(context_.limits.request_timeout);
  deadline_.async_wait([this, weak = std::move(owner)](error_code error) {
    const auto alive = weak.lock();
    if (alive != nullptr && !error) {
      is_late_ = true;
      stream_.cancel();
    }
  });
}

asio::awaitable<void> RequestReader::read_head(
    error_code& error,
    Request& request,
    WireFormat& format) {
  auto token = asio::redirect_error(asio::use_awaitable, error);
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(context_.limits.header_bytes));
  parser_->body_limit(context_.limits.body_bytes);
  co_await http::async_read_header(stream_, buffer_, *parser_, token);
  if (!error) {
    take_head(request, format);
  }
}

asio::awaitable<void> RequestReader::read_body(error_code& error) {
  auto token = asio::redirect_error(asio::use_awaitable, error);
  const auto expect = parser_->get()[http::field::expect];
  if (beast::iequals(expect, "100-continue") && !parser_->is_done()) {
    const auto bytes = asio::buffer(kContinue);
    co_await asio::async_write(stream_, bytes, token);
  }
  while (!error && !parser_->is_done()) {
    co_await http::async_read_some(stream_, buffer_, *parser_, token);
    const size_t held = std::max(parser_->get().body().size(), kFreeBytes);
    if (!share_.grow_to(held - kFreeBytes)) {
      refusal_ = busy();
      co_return;
    }
  }
}

void RequestReader::take_head(Request& request, WireFormat& format) const {
  const auto& message = parser_->get();
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  format.keep_alive = message.keep_alive();
  format.head_only = message.method() == http::verb::head;
  format.chunked = message.version() >= 11;
}

bool RequestReader::is_admitted(const Request& request) const {
  const auto authorization = parser_->get()[http::field::authorization];
  return is_public(request.target) ||
      context_.keys.admit({authorization.data(), authorization.size()});
}

std::optional<Reply> RequestReader::refusal_of(error_code error) const {
  if (is_late_) {
    return refuse(
        408,
        "request_timeout",
        "the request took longer than " +
            std::to_string(context_.limits.request_timeout.count()) +
            " ms to arrive: send it faster");
  }
  if (error == http::error::header_limit) {
    return refuse(
        431,
        "header_too_large",
        "the request's headers are over " +
            std::to_string(context_.limits.header_bytes) +
            " bytes: send fewer or shorter ones");
  }
  if (error == http::error::body_limit) {
    return refuse(
        413,
        "body_too_large",
        "the request's body is over " +
            std::to_string(context_.limits.body_bytes) +
            " bytes: send a shorter one");
  }
  if (error == http::error::end_of_stream ||
      error == http::error::partial_message ||
      error.category() != http::make_error_code({}).category()) {
    return std::nullopt;
  }
  return refuse(
      400,
      "malformed_http",
      "expected an HTTP/1.1 request, got something else (" + error.message() +
          ")");
}

} // namespace ingle

#include "http/connection.h"

#include <exception>
#include <utility>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/rfc7230.hpp>

#include "api/answer_writer.h"
#include "api/error_body.h"
#include "base/log.h"
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
// How much a client may send ahead while its answer is made; with more waiting
// a closed connection is only noticed when a write fails.
constexpr size_t kAheadBytes = size_t{256} << 10;
// A refused client may still be sending: closing at once would reset the
// connection and take the reply with it.
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr int kClientLeft = 499; // as logged; it got no whole answer
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

Status server_stopping() {
  return Status::overloaded("the server is stopping")
      .with_reason("server_stopping");
}

Reply malformed(int status, const char* code, std::string message) {
  Reply reply;
  reply.status = status;
  reply.body =
      error_body(Status::invalid_request(std::move(message)).with_reason(code));
  return reply;
}

} // namespace

Connection::Connection(
    asio::ip::tcp::socket socket,
    const ConnectionContext& context)
    : context_(context),
      stream_(std::move(socket)),
      wake_(stream_.get_executor()) {}

Connection::~Connection() {
  abandon();
}

void Connection::abandon() {
  if (queue_ == nullptr) {
    return;
  }
  queue_->close();
  queue_ = nullptr;
  if (generation_) {
    context_.generator.cancel(*generation_);
    generation_.reset();
  }
}

void Connection::stop() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->stopping_ = true;
    if (self->generation_) {
      self->context_.generator.cancel(*self->generation_);
    } else if (self->receiving_) {
      self->stream_.cancel();
    }
  });
}

asio::awaitable<void> Connection::run() {
  bool more = true;
  while (more && !stopping_) {
    std::string failure;
    try {
      more = co_await serve_one();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (!failure.empty()) {
      Reply reply = failure_reply(Status::internal(failure), request_.id);
      more = false;
      abandon();
      co_await stop_watch();
      if (!responding_) {
        format_.keep_alive = false;
        co_await send(reply);
      }
    }
  }
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

asio::awaitable<bool> Connection::serve_one() {
  const bool received = co_await receive();
  if (!received) {
    co_return false;
  }
  std::variant<Reply, Answer> action = context_.routes.handle(request_);
  request_.body = {};
  bool more = false;
  if (auto* const reply = std::get_if<Reply>(&action)) {
    more = co_await send(*reply);
  } else {
    more = co_await generate(std::get<Answer>(action));
  }
  co_return more;
}

// Receiving.

asio::awaitable<bool> Connection::receive() {
  responding_ = false;
  receiving_ = true;
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  if (buffer_.size() == 0) {
    stream_.expires_after(context_.limits.idle_timeout);
    const auto space = buffer_.prepare(kReadBytes);
    const size_t received = co_await stream_.async_read_some(space, token);
    buffer_.commit(received);
  }
  if (error || stopping_) {
    receiving_ = false;
    co_return false;
  }
  started_ = context_.clock.now();
  request_ = {};
  request_.id = make_request_id();
  format_ = {};
  const bool whole = co_await read_message(error);
  receiving_ = false;
  if (!whole) {
    co_return co_await refuse(error);
  }
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  co_return true;
}

asio::awaitable<bool> Connection::read_message(error_code& error) {
  auto token = asio::redirect_error(asio::use_awaitable, error);
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(context_.limits.header_bytes));
  parser_->body_limit(context_.limits.body_bytes);
  stream_.expires_after(context_.limits.request_timeout);
  co_await http::async_read_header(stream_, buffer_, *parser_, token);
  if (error) {
    co_return false;
  }
  take_head();
  const auto expect = parser_->get()[http::field::expect];
  if (beast::iequals(expect, "100-continue") && !parser_->is_done()) {
    const auto bytes = asio::buffer(kContinue);
    co_await asio::async_write(stream_, bytes, token);
  }
  if (!error && !parser_->is_done()) {
    co_await http::async_read(stream_, buffer_, *parser_, token);
  }
  co_return !error;
}

void Connection::take_head() {
  const auto& message = parser_->get();
  request_.method = std::string(message.method_string());
  request_.target = std::string(message.target());
  format_.keep_alive = message.keep_alive();
  format_.head_only = message.method() == http::verb::head;
  format_.chunked = message.version() >= 11;
}

asio::awaitable<bool> Connection::refuse(error_code error) {
  Reply reply;
  if (error == http::error::header_limit) {
    reply = malformed(
        431,
        "header_too_large",
        "the request's headers are over " +
            std::to_string(context_.limits.header_bytes) + " bytes");
  } else if (error == http::error::body_limit) {
    reply = malformed(
        413,
        "body_too_large",
        "the request's body is over " +
            std::to_string(context_.limits.body_bytes) + " bytes");
  } else if (
      error == http::error::end_of_stream ||
      error == http::error::partial_message ||
      error.category() != http::make_error_code({}).category()) {
    co_return false; // the client left, or took too long
  } else {
    reply = malformed(
        400, "malformed_http", "the request is not HTTP: " + error.message());
  }
  parser_.reset();
  format_.keep_alive = false;
  co_await send(reply);
  co_await linger();
  co_return false;
}

asio::awaitable<void> Connection::linger() {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  buffer_.clear();
  stream_.expires_after(kLingerTime);
  while (!error) {
    const auto space = buffer_.prepare(kReadBytes);
    co_await stream_.async_read_some(space, token);
  }
}

// Sending.

asio::awaitable<bool> Connection::send(Reply& reply) {
  reply.headers.emplace_back("x-request-id", request_.id);
  format_.keep_alive = format_.keep_alive && !stopping_;
  status_ = reply.status;
  out_ = to_wire(reply, format_);
  const bool written = co_await write_out();
  log_request();
  co_return written&& format_.keep_alive;
}

asio::awaitable<bool> Connection::write_out() {
  if (out_.empty()) {
    co_return true;
  }
  responding_ = true;
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  stream_.expires_after(context_.limits.write_timeout);
  const auto bytes = asio::buffer(out_);
  co_await asio::async_write(stream_, bytes, token);
  out_.clear();
  if (error) {
    status_ = kClientLeft;
  }
  co_return !error;
}

void Connection::log_request() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto elapsed =
      duration_cast<milliseconds>(context_.clock.now() - started_);
  std::string line = request_.method.empty() ? "?" : request_.method;
  line += " ";
  line += loggable_path(request_.target);
  line += " " + std::to_string(status_);
  line += " " + std::to_string(elapsed.count()) + " ms ";
  line += request_.id;
  log_info(line);
}

// Generating.

asio::awaitable<bool> Connection::generate(Answer& answer) {
  auto wake = [weak = weak_from_this(), executor = stream_.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) {
        self->wake_.cancel();
      }
    });
  };
  Status refused;
  if (stopping_) {
    refused = server_stopping();
  } else {
    queue_ = std::make_shared<AnswerQueue>(std::move(wake));
    auto submitted =
        context_.generator.submit(std::move(answer.generation), queue_);
    if (submitted.is_ok()) {
      generation_ = *submitted;
    } else {
      refused = std::move(submitted).status();
    }
  }
  bool more = false;
  if (!refused.is_ok()) {
    abandon();
    Reply reply = failure_reply(refused, request_.id);
    more = co_await send(reply);
    co_return more;
  }
  start_watch();
  if (answer.stream) {
    more = co_await stream_answer(*answer.writer);
  } else {
    more = co_await whole_answer(*answer.writer);
  }
  abandon();
  co_await stop_watch();
  co_return more && !client_gone_;
}

asio::awaitable<bool> Connection::stream_answer(AnswerWriter& writer) {
  format_.keep_alive = format_.keep_alive && format_.chunked;
  status_ = 200;
  out_ = stream_head(request_.id, format_);
  out_ += stream_piece(writer.begin(), format_);
  bool going = co_await write_out();
  bool complete = false;
  while (going && !complete) {
    going = co_await wait_for_batch();
    if (!going) {
      break;
    }
    for (const GenerationDelta& delta : batch_.deltas) {
      out_ += stream_piece(writer.delta(delta), format_);
    }
    if (batch_.end) {
      generation_.reset();
      complete = append_end(writer, *batch_.end);
      const bool written = co_await write_out();
      going = complete && written;
      break;
    }
    going = co_await write_out();
  }
  if (generation_) {
    status_ = kClientLeft;
  }
  log_request();
  co_return going&& format_.keep_alive && !stopping_;
}

// Returns false for an answer that failed: the connection is closed after its
// error event.
bool Connection::append_end(AnswerWriter& writer, const GenerationEnd& end) {
  const bool cancelled = end.reason == FinishReason::kCancelled;
  const bool complete = end.status.is_ok() && !cancelled;
  if (complete) {
    out_ += stream_piece(writer.end(end), format_);
  } else {
    const Status failure = end.status.is_ok() ? server_stopping() : end.status;
    status_ = http_status(failure);
    const Status told = told_to_client(failure, request_.id);
    out_ += stream_piece(failure_event(told), format_);
  }
  out_ += stream_tail(format_);
  return complete;
}

asio::awaitable<bool> Connection::whole_answer(AnswerWriter& writer) {
  std::string text;
  bool there = co_await wait_for_batch();
  while (there) {
    for (const GenerationDelta& delta : batch_.deltas) {
      text += delta.text;
    }
    if (batch_.end) {
      break;
    }
    there = co_await wait_for_batch();
  }
  if (!there) {
    status_ = kClientLeft;
    log_request();
    co_return false;
  }
  generation_.reset();
  Reply reply = whole_reply(writer, text, *batch_.end);
  const bool more = co_await send(reply);
  co_return more;
}

Reply Connection::whole_reply(
    AnswerWriter& writer,
    const std::string& text,
    const GenerationEnd& end) {
  if (!end.status.is_ok()) {
    return failure_reply(end.status, request_.id);
  }
  if (end.reason == FinishReason::kCancelled) {
    return failure_reply(server_stopping(), request_.id);
  }
  Reply reply;
  reply.body = writer.whole(text, end);
  return reply;
}

asio::awaitable<bool> Connection::wait_for_batch() {
  while (!client_gone_) {
    batch_ = queue_->take();
    if (!batch_.empty()) {
      co_return true;
    }
    co_await wait_for_wake();
  }
  co_return false;
}

asio::awaitable<void> Connection::wait_for_wake() {
  error_code ignored;
  auto token = asio::redirect_error(asio::use_awaitable, ignored);
  wake_.expires_at(asio::steady_timer::time_point::max());
  co_await wake_.async_wait(token);
}

// Watching the client while it waits.

void Connection::start_watch() {
  watch_wanted_ = true;
  watching_ = true;
  auto done = [self = shared_from_this()](std::exception_ptr) {
    self->watching_ = false;
    self->wake_.cancel();
  };
  asio::co_spawn(stream_.get_executor(), watch(), std::move(done));
}

asio::awaitable<void> Connection::watch() {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  while (watch_wanted_ && buffer_.size() < kAheadBytes) {
    stream_.expires_never(); // of the read; a write that runs keeps its own
    const auto space = buffer_.prepare(kReadBytes);
    const size_t received = co_await stream_.async_read_some(space, token);
    buffer_.commit(received);
    if (error) {
      break;
    }
  }
  if (error && watch_wanted_) {
    client_left();
  }
}

void Connection::client_left() {
  client_gone_ = true;
  if (generation_) {
    context_.generator.cancel(*generation_);
  }
  stream_.cancel();
  wake_.cancel();
}

asio::awaitable<void> Connection::stop_watch() {
  watch_wanted_ = false;
  while (watching_) {
    stream_.cancel();
    co_await wait_for_wake();
  }
}

} // namespace ingle

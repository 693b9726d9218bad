#include "http/connection.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "api/answer_writer.h"
#include "api/error_body.h"
#include "base/log.h"
#include "engine/generator_errors.h"

// g++ 12 miscompiles some temporaries inside co_await expressions: every
// argument has a name here, and coroutines take references.

namespace ingle {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBytes = size_t{16} << 10;
// How much a client may send ahead while its answer is made; with more waiting
// a closed connection is only noticed when a write fails.
constexpr size_t kAheadBytes = size_t{256} << 10;
// A refused client may still be sending: closing at once would reset the
// connection and take the reply with it.
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr int kClientLeft = 499; // as logged; it got no whole answer
constexpr std::string_view kPing = ": ping\n\n"; // a comment, to SSE readers

// What was read again and what not, and why: for the log.
std::string describe(const GenerationStats& stats) {
  const int read = stats.prompt_tokens - stats.cached_tokens;
  return "prompt " + std::to_string(stats.prompt_tokens) + ": " +
      std::to_string(stats.cached_tokens) + " from " +
      std::string(to_string(stats.cached_from)) + ", " + std::to_string(read) +
      " read, diverged at " + std::to_string(stats.shared_tokens) +
      "; generated " + std::to_string(stats.generated_tokens);
}

} // namespace

Connection::Connection(
    asio::ip::tcp::socket socket,
    const ConnectionContext& context)
    : context_(context),
      stream_(std::move(socket)),
      wake_(stream_.get_executor()),
      reader_(stream_, context.reader) {}

Connection::~Connection() {
  abandon();
}

void Connection::abandon() {
  if (queue_ == nullptr) {
    return;
  }
  queue_->close();
  queue_ = nullptr;
  cancel_generations();
  generations_.clear();
}

void Connection::end_now() {
  abandon();
  stream_.close();
}

void Connection::cancel_generations() {
  for (const std::optional<GenerationId>& id : generations_) {
    if (id) {
      context_.generator.cancel(*id);
    }
  }
}

bool Connection::is_generating() const {
  return std::any_of(
      generations_.begin(), generations_.end(), [](const auto& id) {
        return id.has_value();
      });
}

void Connection::stop() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->stopping_ = true;
    if (self->is_generating()) {
      self->cancel_generations();
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
  generated_.reset();
  const bool received = co_await receive();
  if (!received) {
    co_return false;
  }
  std::variant<Reply, Answer> action;
  if (is_quick(request_)) {
    action = context_.routes.handle(request_);
  } else {
    auto work = handle();
    auto spawned =
        asio::co_spawn(context_.workers, std::move(work), asio::use_awaitable);
    action = co_await std::move(spawned);
  }
  request_.body = {};
  reader_.release_body();
  bool more = false;
  if (auto* const reply = std::get_if<Reply>(&action)) {
    more = co_await send(*reply);
  } else {
    more = co_await generate(std::get<Answer>(action));
  }
  co_return more;
}

// On a worker thread; the connection waits for it.
asio::awaitable<std::variant<Reply, Answer>> Connection::handle() {
  co_return context_.routes.handle(request_);
}

// Receiving.

asio::awaitable<bool> Connection::receive() {
  responding_ = false;
  receiving_ = true;
  auto owner = weak_from_this();
  auto reading = reader_.read(std::move(owner), request_, format_);
  const bool is_whole = co_await std::move(reading);
  receiving_ = false;
  if (!is_whole && reader_.refusal() && !stopping_) {
    co_await refuse(*reader_.refusal());
  }
  co_return is_whole && !stopping_;
}

// The rest of the request is not read, so nothing can follow it.
asio::awaitable<void> Connection::refuse(Reply& reply) {
  format_.keep_alive = false;
  co_await send(reply);
  co_await linger();
}

asio::awaitable<void> Connection::linger() {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  reader_.buffer().clear();
  stream_.expires_after(kLingerTime);
  while (!error) {
    const auto space = reader_.buffer().prepare(kReadBytes);
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
  record_request();
  co_return written&& format_.keep_alive;
}

asio::awaitable<bool> Connection::write_out() {
  if (out_.empty()) {
    co_return true;
  }
  responding_ = true;
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  stream_.expires_after(context_.reader.limits.write_timeout);
  const auto bytes = asio::buffer(out_);
  co_await asio::async_write(stream_, bytes, token);
  out_.clear();
  last_write_ = std::chrono::steady_clock::now();
  if (error) {
    status_ = kClientLeft;
  }
  co_return !error;
}

void Connection::record_request() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto elapsed = duration_cast<milliseconds>(
      context_.reader.clock.now() - reader_.started());
  std::string line = request_.method.empty() ? "?" : request_.method;
  line += " ";
  line += loggable_path(request_.target);
  line += " " + std::to_string(status_);
  line += " " + std::to_string(elapsed.count()) + " ms ";
  line += request_.id;
  if (generated_) {
    line += ", " + describe(*generated_);
  }
  log_info(line);
  context_.metrics.count_response(status_);
}

// Generating.

asio::awaitable<bool> Connection::generate(Answer& answer) {
  const Status submitted =
      stopping_ ? server_stopping() : submit(std::move(answer.generations));
  bool more = false;
  if (!submitted.is_ok()) {
    abandon();
    Reply reply = failure_reply(submitted, request_.id);
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

Status Connection::submit(std::vector<GenerationRequest> generations) {
  auto wake = [weak = weak_from_this(), executor = stream_.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) {
        self->wake_.cancel();
      }
    });
  };
  queue_ = std::make_shared<AnswerQueue>(std::move(wake));
  for (GenerationRequest& generation : generations) {
    INGLE_ASSIGN_OR_RETURN(
        const GenerationId id,
        context_.generator.submit(
            std::move(generation), queue_->sink_of(generations_.size())));
    generations_.emplace_back(id);
  }
  return {};
}

// A failure ends the whole answer, and the connection after its error event.
asio::awaitable<bool> Connection::stream_answer(AnswerWriter& writer) {
  format_.keep_alive = format_.keep_alive && format_.chunked;
  status_ = 200;
  out_ = stream_head(request_.id, format_);
  out_ += stream_piece(writer.begin(), format_);
  Status status;
  bool connected = co_await write_out();
  while (connected && status.is_ok() && is_generating()) {
    const TimePoint ping_due =
        last_write_ + context_.reader.limits.ping_interval;
    connected = co_await wait_for_events(ping_due);
    if (!connected) {
      break;
    }
    for (AnswerEvent& event : events_) {
      std::string bytes;
      status = append(writer, event, bytes);
      out_ += stream_piece(bytes, format_);
      if (!status.is_ok()) {
        const Status told = told_to_client(status, request_.id);
        status_ = http_status(status);
        out_ += stream_piece(failure_event(told), format_);
        break;
      }
    }
    if (!status.is_ok() || !is_generating()) {
      out_ += stream_tail(format_);
    } else if (out_.empty() && std::chrono::steady_clock::now() >= ping_due) {
      out_ += stream_piece(kPing, format_);
    }
    connected = co_await write_out();
  }
  if (!connected) {
    status_ = kClientLeft;
  }
  record_request();
  co_return connected&& status.is_ok() && format_.keep_alive && !stopping_;
}

asio::awaitable<bool> Connection::whole_answer(AnswerWriter& writer) {
  std::string body = writer.begin();
  Status status;
  while (status.is_ok() && is_generating()) {
    const bool connected = co_await wait_for_events(TimePoint::max());
    if (!connected) {
      status_ = kClientLeft;
      record_request();
      co_return false;
    }
    for (AnswerEvent& event : events_) {
      status = append(writer, event, body);
      if (!status.is_ok()) {
        break;
      }
    }
  }
  Reply reply;
  if (status.is_ok()) {
    reply.body = std::move(body);
  } else {
    reply = failure_reply(status, request_.id);
  }
  const bool more = co_await send(reply);
  co_return more;
}

Status Connection::append(
    AnswerWriter& writer,
    AnswerEvent& event,
    std::string& bytes) {
  const size_t choice = event.choice;
  if (const auto* const step = std::get_if<PrefillStep>(&event.what)) {
    bytes += writer.prefill(choice, *step);
  } else if (const auto* const d = std::get_if<GenerationDelta>(&event.what)) {
    bytes += writer.delta(choice, *d);
  } else {
    const auto& end = std::get<GenerationEnd>(event.what);
    generations_[choice].reset();
    if (generated_) {
      generated_->cached_tokens += end.stats.cached_tokens;
      generated_->prompt_tokens += end.stats.prompt_tokens;
      generated_->generated_tokens += end.stats.generated_tokens;
    } else {
      generated_ = end.stats;
    }
    INGLE_RETURN_IF_ERROR(end.status);
    if (end.reason == FinishReason::kCancelled) {
      return server_stopping();
    }
    bytes += writer.end(choice, end);
  }
  return {};
}

asio::awaitable<bool> Connection::wait_for_events(TimePoint deadline) {
  while (!client_gone_) {
    events_ = queue_->take();
    if (!events_.empty() || std::chrono::steady_clock::now() >= deadline) {
      co_return true;
    }
    co_await wait_for_wake(deadline);
  }
  co_return false;
}

asio::awaitable<void> Connection::wait_for_wake(TimePoint deadline) {
  error_code ignored;
  auto token = asio::redirect_error(asio::use_awaitable, ignored);
  wake_.expires_at(deadline);
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
  try {
    asio::co_spawn(stream_.get_executor(), watch(), std::move(done));
  } catch (...) {
    watching_ = false;
    throw;
  }
}

asio::awaitable<void> Connection::watch() {
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  while (watch_wanted_ && reader_.buffer().size() < kAheadBytes) {
    stream_.expires_never(); // of the read; a write that runs keeps its own
    const auto space = reader_.buffer().prepare(kReadBytes);
    const size_t received = co_await stream_.async_read_some(space, token);
    reader_.buffer().commit(received);
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
  cancel_generations();
  stream_.cancel();
  wake_.cancel();
}

asio::awaitable<void> Connection::stop_watch() {
  watch_wanted_ = false;
  while (watching_) {
    stream_.cancel();
    co_await wait_for_wake(TimePoint::max());
  }
}

} // namespace ingle

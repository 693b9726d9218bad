// One client's connection: requests in, answers out, one after another.
//
// Private to http/: includes Asio.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include "engine/generator.h"
#include "http/answer_queue.h"
#include "http/metrics.h"
#include "http/reply.h"
#include "http/request_reader.h"
#include "http/routes.h"

namespace ingle {

// What all connections of a server share; outlives them.
struct ConnectionContext {
  ReaderContext reader;
  const Routes& routes;
  Generator& generator;
  Metrics& metrics;
  boost::asio::any_io_executor workers; // for what takes long
};

// Owns:    the socket, and the generation that it waits for.
// Threads: everything runs on the socket's strand, but for stop() (any) and
//          end_now().
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(
      boost::asio::ip::tcp::socket socket,
      const ConnectionContext& context);
  ~Connection();

  // To the end of the connection. Throws nothing that concerns others.
  boost::asio::awaitable<void> run();

  // Ends soon: nothing more is read, what is generated is cancelled.
  void stop();

  // Ends now. Requires: the I/O threads have been joined.
  void end_now();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  // These return true iff the connection goes on.
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> receive();
  boost::asio::awaitable<bool> send(Reply& reply);
  boost::asio::awaitable<bool> generate(Answer& answer);
  boost::asio::awaitable<bool> stream_answer(AnswerWriter& writer);
  boost::asio::awaitable<bool> whole_answer(AnswerWriter& writer);
  // These, iff it worked; false: the client is gone. At the deadline there are
  // no events.
  boost::asio::awaitable<bool> wait_for_events(TimePoint deadline);
  boost::asio::awaitable<bool> write_out();

  boost::asio::awaitable<std::variant<Reply, Answer>> handle();

  boost::asio::awaitable<void> refuse(Reply& reply);
  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<void> wait_for_wake(TimePoint deadline);
  // Reads while an answer is made, so that a closed connection is noticed;
  // what comes is kept for the next request.
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<void> stop_watch();
  void start_watch();
  void client_left();

  // Lets go of what is being generated.
  void abandon();
  Status submit(std::vector<GenerationRequest> generations);
  // Writes what `event` tells; not ok: the answer failed.
  Status append(AnswerWriter& writer, AnswerEvent& event, std::string& bytes);
  bool is_generating() const;
  void cancel_generations();
  void record_request(); // logs and counts it

  const ConnectionContext& context_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer wake_;
  RequestReader reader_; // of stream_

  Request request_;
  WireFormat format_;
  int status_ = 0; // as logged
  bool responding_ = false; // true iff bytes of this answer may be out
  std::string out_; // to write
  TimePoint last_write_; // of the system's clock, as timers are

  std::shared_ptr<AnswerQueue> queue_; // null: nothing is being generated
  // By choice; nothing once its end has been seen.
  std::vector<std::optional<GenerationId>> generations_;
  std::vector<AnswerEvent> events_; // taken from the queue
  // Of the choices that are over: the first one's, with the tokens of all.
  std::optional<GenerationStats> generated_;

  bool receiving_ = false;
  bool stopping_ = false;
  bool client_gone_ = false;
  bool watch_wanted_ = false;
  bool watching_ = false; // true iff the coroutine of watch() lives
};

} // namespace ingle

// One client's connection: requests in, answers out, one after another.
//
// Private to http/: includes Asio.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/clock.h"
#include "engine/generator.h"
#include "http/answer_queue.h"
#include "http/reply.h"
#include "http/routes.h"
#include "http/server.h"

namespace ingle {

// What all connections of a server share; outlives them.
struct ConnectionContext {
  const Routes& routes;
  Generator& generator;
  const Clock& clock;
  const ServerLimits& limits;
};

// Owns:    the socket, and the generation that it waits for.
// Threads: everything runs on the socket's strand, but for stop() (any) and
//          abandon().
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

  // Lets go of the generation. Requires: the I/O threads have been joined.
  void abandon();

 private:
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;

  // These return true iff the connection goes on.
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> receive();
  boost::asio::awaitable<bool> read_message(boost::system::error_code& error);
  boost::asio::awaitable<bool> refuse(boost::system::error_code error);
  boost::asio::awaitable<bool> send(Reply& reply);
  boost::asio::awaitable<bool> generate(Answer& answer);
  boost::asio::awaitable<bool> stream_answer(AnswerWriter& writer);
  boost::asio::awaitable<bool> whole_answer(AnswerWriter& writer);
  // These, iff it worked; false: the client is gone.
  boost::asio::awaitable<bool> wait_for_batch();
  boost::asio::awaitable<bool> write_out();

  boost::asio::awaitable<void> linger();
  boost::asio::awaitable<void> wait_for_wake();
  // Reads while an answer is made, so that a closed connection is noticed;
  // what comes is kept for the next request.
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<void> stop_watch();
  void start_watch();
  void client_left();

  void take_head();
  bool append_end(AnswerWriter& writer, const GenerationEnd& end);
  Reply whole_reply(
      AnswerWriter& writer,
      const std::string& text,
      const GenerationEnd& end);
  void log_request();

  const ConnectionContext& context_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer wake_;
  boost::beast::flat_buffer buffer_; // received, not parsed yet
  std::optional<Parser> parser_;

  Request request_;
  WireFormat format_;
  std::chrono::steady_clock::time_point started_;
  int status_ = 0; // as logged
  bool responding_ = false; // true iff bytes of this answer may be out
  std::string out_; // to write

  std::shared_ptr<AnswerQueue> queue_; // null: nothing is being generated
  std::optional<GenerationId> generation_; // until its end has been seen
  AnswerQueue::Batch batch_;

  bool receiving_ = false;
  bool stopping_ = false;
  bool client_gone_ = false;
  bool watch_wanted_ = false;
  bool watching_ = false; // true iff the coroutine of watch() lives
};

} // namespace ingle

#include "http/server.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "http/connection.h"
#include "http/routes.h"

namespace ingle {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

// After an accept that failed (no descriptors or no memory left): long enough
// not to spin.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
// Requests that are parsed, rendered and tokenised at the same time.
constexpr size_t kWorkers = 2;

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port
                                    : address + ":" + port;
}

Status check_api_keys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (key.empty()) {
      return Status::invalid_request(
          "an API key is empty: give one that nobody guesses");
    }
  }
  return {};
}

// `local_only`: an address that other machines reach is an error.
Result<tcp::endpoint> resolve(
    asio::io_context& io,
    const std::string& host,
    uint16_t port,
    bool local_only) {
  tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(
      host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return Status::io(
        host + " is no address or name that this machine knows (" +
        error.message() + "): use --host 127.0.0.1");
  }
  tcp::endpoint chosen = found.begin()->endpoint();
  for (const auto& entry : found) {
    if (local_only && !entry.endpoint().address().is_loopback()) {
      return Status::invalid_request(
          host +
          " can be reached from other machines, which needs an API key: set "
          "INGLE_API_KEY or give --api-key-file, or use --host 127.0.0.1");
    }
    if (entry.endpoint().address().is_v4()) {
      chosen = entry.endpoint();
    }
  }
  return chosen;
}

Status listen_failure(const tcp::endpoint& endpoint, const error_code& error) {
  const std::string place = to_text(endpoint);
  if (error == asio::error::address_in_use) {
    return Status::io(
        place +
        " is in use by another program: stop it or choose another with "
        "--port");
  }
  if (error == asio::error::access_denied) {
    return Status::io(
        place + " is not open to this user: choose a --port above 1023");
  }
  return Status::io("cannot listen on " + place + ": " + error.message());
}

Status listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) {
    // A port whose last owner has just ended is free.
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor.bind(endpoint, error);
  }
  if (!error) {
    acceptor.listen(asio::socket_base::max_listen_connections, error);
  }
  return error ? listen_failure(endpoint, error) : Status();
}

// A fresh socket takes so few bytes at once: nobody is waited for.
void turn_away(tcp::socket& socket) {
  const Status full =
      Status::overloaded("there are too many connections: try again shortly")
          .with_reason("too_many_connections");
  WireFormat format;
  format.keep_alive = false;
  const std::string reply = to_wire(failure_reply(full, ""), format);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(reply), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

} // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Generator& generator, const Clock& clock)
      : options_(std::move(options)),
        routes_(generator, metrics_, clock, options_.version),
        keys_(options_.api_keys),
        bodies_(options_.limits.bodies_bytes),
        workers_(kWorkers),
        context_{
            {clock, options_.limits, keys_, bodies_},
            routes_,
            generator,
            metrics_,
            workers_.get_executor()},
        work_(asio::make_work_guard(io_)),
        acceptor_(asio::make_strand(io_)) {}
  ~Impl() {
    stop();
  }

  // Throws what Asio and std::thread do; destroy the server then.
  Status start();
  void stop();
  uint16_t port() const {
    return port_;
  }

 private:
  asio::awaitable<void> accept_clients();
  asio::awaitable<void> accept_one();
  void admit(tcp::socket socket);
  bool is_full();
  void forget(const Connection* connection);
  std::vector<std::shared_ptr<Connection>> live_connections();

  const ServerOptions options_;
  Metrics metrics_;
  const Routes routes_;
  const ApiKeys keys_;
  BodyBudget bodies_;
  uint16_t port_ = 0;

  asio::io_context io_;
  asio::thread_pool workers_;
  const ConnectionContext context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  tcp::acceptor acceptor_; // on a strand of its own
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::condition_variable all_gone_;
  std::unordered_map<const Connection*, std::weak_ptr<Connection>> connections_;
};

Status Server::Impl::start() {
  INGLE_RETURN_IF_ERROR(check_api_keys(options_.api_keys));
  INGLE_ASSIGN_OR_RETURN(
      const tcp::endpoint endpoint,
      resolve(
          io_,
          options_.host,
          options_.port,
          /*local_only=*/options_.api_keys.empty()));
  INGLE_RETURN_IF_ERROR(listen(acceptor_, endpoint));
  port_ = acceptor_.local_endpoint().port();
  asio::co_spawn(
      acceptor_.get_executor(), accept_clients(), [](std::exception_ptr) {});
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this] { io_.run(); });
  }
  return {};
}

asio::awaitable<void> Server::Impl::accept_clients() {
  asio::steady_timer pause(acceptor_.get_executor());
  error_code ignored;
  auto token = asio::redirect_error(asio::use_awaitable, ignored);
  while (!stopping_) {
    std::string failure;
    try {
      co_await accept_one();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (failure.empty() || stopping_) {
      continue;
    }
    log_warning("a connection was not accepted: " + failure);
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(token);
  }
}

asio::awaitable<void> Server::Impl::accept_one() {
  tcp::socket socket(asio::make_strand(io_));
  co_await acceptor_.async_accept(socket, asio::use_awaitable);
  if (!stopping_) {
    admit(std::move(socket));
  }
}

void Server::Impl::admit(tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  if (is_full()) {
    log_warning("a connection was closed: there are too many");
    turn_away(socket);
    metrics_.count_response(503);
    return;
  }
  const auto executor = socket.get_executor();
  const auto connection =
      std::make_shared<Connection>(std::move(socket), context_);
  {
    const std::lock_guard lock(mutex_);
    connections_.emplace(connection.get(), connection);
  }
  try {
    asio::co_spawn(
        executor, connection->run(), [this, connection](std::exception_ptr) {
          forget(connection.get());
        });
  } catch (...) {
    forget(connection.get());
    throw;
  }
  if (stopping_) {
    connection->stop(); // stop() may not have seen it
  }
}

// Only admit() adds any, so there is room until it does.
bool Server::Impl::is_full() {
  const std::lock_guard lock(mutex_);
  return connections_.size() >= options_.limits.connections;
}

void Server::Impl::forget(const Connection* connection) {
  const std::lock_guard lock(mutex_);
  connections_.erase(connection);
  if (connections_.empty()) {
    all_gone_.notify_all();
  }
}

std::vector<std::shared_ptr<Connection>> Server::Impl::live_connections() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> live;
  for (const auto& [key, weak] : connections_) {
    if (auto connection = weak.lock()) {
      live.push_back(std::move(connection));
    }
  }
  return live;
}

void Server::Impl::stop() {
  if (threads_.empty()) {
    return;
  }
  stopping_ = true;
  asio::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
  });
  for (const auto& connection : live_connections()) {
    connection->stop();
  }
  {
    std::unique_lock lock(mutex_);
    all_gone_.wait_for(lock, options_.limits.stop_timeout, [this] {
      return connections_.empty();
    });
  }
  work_.reset();
  io_.stop();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
  // What they work on belongs to a connection.
  workers_.stop();
  workers_.join();
  // Those that did not end in time: the engine must not call into io_ while it
  // is torn down.
  for (const auto& connection : live_connections()) {
    connection->end_now();
  }
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop();
}

Result<std::unique_ptr<Server>>
Server::start(ServerOptions options, Generator& generator, const Clock& clock) {
  try {
    auto impl = std::make_unique<Impl>(std::move(options), generator, clock);
    INGLE_RETURN_IF_ERROR(impl->start());
    return std::unique_ptr<Server>(new Server(std::move(impl)));
  } catch (const std::exception& error) {
    return Status::io(
        std::string("the server could not be started: ") + error.what());
  }
}

uint16_t Server::port() const {
  return impl_->port();
}

void Server::stop() {
  impl_->stop();
}

} // namespace ingle

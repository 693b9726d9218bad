// The HTTP server: listens, and runs connections on threads of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/generator.h"

namespace ingle {

// What a client may take. Each is enforced where it is read.
struct ServerLimits {
  size_t header_bytes = size_t{16} << 10; // over it: 431
  size_t body_bytes = size_t{32} << 20; // over it: 413
  // Of all requests that are being received, together; over it: 503.
  size_t bodies_bytes = size_t{256} << 20;
  size_t connections = 1024; // over it: 503
  // Between requests on a connection that is kept.
  std::chrono::milliseconds idle_timeout = std::chrono::minutes(2);
  // From a request's first byte to its last; over it: 408.
  std::chrono::milliseconds request_timeout = std::chrono::minutes(1);
  // For a piece of an answer to be taken.
  std::chrono::milliseconds write_timeout = std::chrono::minutes(1);
  // A stream that was quiet for so long sends a comment, so that nobody between
  // it and its client takes it for dead.
  std::chrono::milliseconds ping_interval = std::chrono::seconds(5);
  // What stop() waits for running answers.
  std::chrono::milliseconds stop_timeout = std::chrono::seconds(5);
};

struct ServerOptions {
  std::string host = "127.0.0.1"; // an address of this machine, or its name
  uint16_t port = 8080; // 0: any free one
  int threads = 2;
  std::string version; // as GET /v1 reports it
  // One of these has to come with every request, but for GET /health; none:
  // everybody who reaches the port is served.
  std::vector<std::string> api_keys;
  ServerLimits limits;
};

// Every request is a coroutine on one of the I/O threads; what takes longer
// (parsing, rendering, tokenising) runs on worker threads beside them. The
// engine is reached through `Generator` alone, and never waited for by a
// thread.
//
// A client that closes its connection, or its sending half of it, while an
// answer is made has left: the generation is cancelled at once.
//
// Threads: start() and stop() one; the server's own are inside.
class Server {
 public:
  // Listens when it returns. `generator` and `clock` outlive the server.
  //
  // Errors: kIo (the port is in use, the address is not of this machine, ...),
  //         kInvalidRequest (`host` is reachable from other machines, and there
  //         are no API keys; a key that is empty).
  static Result<std::unique_ptr<Server>>
  start(ServerOptions options, Generator& generator, const Clock& clock);

  ~Server(); // stop()

  // The one that is bound.
  uint16_t port() const;

  // Takes no more connections, cancels what is being generated, lets running
  // responses end (within limits.stop_timeout) and joins the threads; a request
  // that is being parsed, rendered or tokenised is waited for. Again: no
  // effect.
  void stop();

 private:
  class Impl;

  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

} // namespace ingle

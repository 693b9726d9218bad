// What a client may send to a server, on a connection without a network.
//
// The first byte says how the client and the engine behave (see Behaviour);
// the rest is what the client sends. Everything runs on one thread, and a
// generation is made while it is submitted, so that an input always does the
// same.

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <nlohmann/json.hpp>

#include "api/testing/fake_served_model.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "fuzz/checks.h"
#include "fuzz/http_responses.h"
#include "http/connection.h"

namespace ingle {
namespace {

namespace asio = boost::asio;
using nlohmann::json;

// Small, so that short inputs reach them.
constexpr size_t kHeaderBytes = 2048;
constexpr size_t kBodyBytes = 8192;

enum class Engine { kAnswers, kRefuses, kFails, kWaits };

struct Behaviour {
  Engine engine = Engine::kAnswers;
  size_t piece = SIZE_MAX; // bytes that are sent at a time
  bool closes_at_once = false; // else it closes its half, and reads to the end
};

Behaviour behaviour_of(uint8_t byte) {
  constexpr size_t kPieces[] = {SIZE_MAX, 1, 16, 200};
  Behaviour behaviour;
  behaviour.engine = static_cast<Engine>(byte & 3);
  behaviour.piece = kPieces[byte >> 2 & 3];
  behaviour.closes_at_once = (byte & 16) != 0;
  return behaviour;
}

class StoppedClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return {};
  }
  std::chrono::milliseconds since_epoch() const override {
    return std::chrono::seconds(1700000000);
  }
};

class ScriptedGenerator final : public Generator {
 public:
  Engine engine = Engine::kAnswers;

  std::shared_ptr<const ServedModel> model() const override {
    return model_;
  }
  Result<GenerationId> submit(
      GenerationRequest request,
      std::shared_ptr<GenerationSink> sink) override {
    check(!request.prompt.empty(), "a prompt has tokens");
    if (engine == Engine::kRefuses) {
      return Status::overloaded("too many requests").with_reason("queue_full");
    }
    GenerationDelta delta;
    delta.tokens.push_back({});
    delta.text = "Paris";
    sink->on_delta(std::move(delta));
    const GenerationId id = ++last_id_;
    if (engine == Engine::kWaits) {
      waiting_.emplace(id, std::move(sink));
      return id;
    }
    GenerationEnd end;
    if (engine == Engine::kFails) {
      end.status = Status::internal("a failure of the engine");
    }
    sink->on_end(std::move(end));
    return id;
  }
  void cancel(GenerationId id) override {
    const auto found = waiting_.find(id);
    if (found != waiting_.end()) {
      const auto sink = std::move(found->second);
      waiting_.erase(found);
      GenerationEnd end;
      end.reason = FinishReason::kCancelled;
      sink->on_end(std::move(end));
    }
  }
  EngineStats stats() const override {
    return {};
  }
  bool is_idle() const {
    return waiting_.empty();
  }

 private:
  const std::shared_ptr<const ServedModel> model_ =
      std::make_shared<ServedModel>(make_fake_model());
  std::map<GenerationId, std::shared_ptr<GenerationSink>> waiting_;
  GenerationId last_id_ = 0;
};

struct TestServer {
  TestServer() {
    limits.header_bytes = kHeaderBytes;
    limits.body_bytes = kBodyBytes;
  }

  StoppedClock clock;
  ScriptedGenerator generator;
  ServerLimits limits;
  Metrics metrics;
  Routes routes{generator, metrics, clock, "1.2.3"};
  ApiKeys keys{{}};
  BodyBudget bodies{limits.bodies_bytes};
  asio::io_context io{1};
  ConnectionContext context{
      {clock, limits, keys, bodies},
      routes,
      generator,
      metrics,
      io.get_executor()};
};

// A client and its connection to the server.
class Client {
 public:
  explicit Client(TestServer& server) : server_(server) {
    int ends[2];
    const int kind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    check(::socketpair(AF_UNIX, kind, 0, ends) == 0, "there are sockets");
    socket_.reset(ends[0]);
    asio::ip::tcp::socket socket(server.io, asio::ip::tcp::v4(), ends[1]);
    const auto connection =
        std::make_shared<Connection>(std::move(socket), server.context);
    const auto ended = [this, connection](const std::exception_ptr& failure) {
      check(failure == nullptr, "nothing leaves a connection");
      has_ended_ = true;
    };
    asio::co_spawn(server.io, connection->run(), ended);
    run();
  }

  void send(std::string_view bytes, size_t piece) {
    while (!bytes.empty() && is_open_) {
      const size_t size = std::min(piece, bytes.size());
      const ssize_t sent =
          ::send(socket_.get(), bytes.data(), size, MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else {
        // The server may have closed; it must not stop reading.
        check(errno == EPIPE || errno == ECONNRESET, "the server reads");
        is_open_ = false;
      }
      run();
    }
  }

  // Returns what the server sent.
  std::string finish() {
    ::shutdown(socket_.get(), SHUT_WR);
    run();
    check(has_ended_, "a connection ends with its client");
    return std::move(received_);
  }
  void close() {
    socket_.reset();
    run();
    check(has_ended_, "a connection ends with its client");
  }

 private:
  // Until the server has nothing to do without this client.
  void run() {
    bool moved = true;
    while (moved) {
      server_.io.restart();
      moved = server_.io.poll() > 0;
      moved = receive() || moved;
    }
  }
  bool receive() {
    char buffer[16384];
    bool any = false;
    while (socket_.is_open()) {
      const ssize_t count = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (count <= 0) {
        break;
      }
      received_.append(buffer, static_cast<size_t>(count));
      any = true;
    }
    return any;
  }

  TestServer& server_;
  UniqueFd socket_;
  std::string received_;
  bool is_open_ = true;
  bool has_ended_ = false;
};

// Whole events of JSON, but for the end of a stream whose client left.
void check_stream(const HttpResponse& response, bool is_cut) {
  std::string_view rest = response.body;
  std::string_view event;
  while (!rest.empty()) {
    const size_t end = rest.find("\n\n");
    check(end != std::string_view::npos, "an event is whole");
    event = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (event.starts_with(':')) {
      continue; // a comment
    }
    check(event.starts_with("data: "), "an event has data");
    event.remove_prefix(6);
    check(event == "[DONE]" || json::accept(event), "an event is JSON");
  }
  const bool has_failed = event.find("\"error\"") != std::string_view::npos;
  check(event == "[DONE]" || has_failed || is_cut, "a stream says how it ends");
}

void check_response(const HttpResponse& response, Engine engine) {
  check(response.status >= 200 && response.status < 600, "the status is final");
  check(
      response.status != 500 || engine == Engine::kFails,
      "no input makes a failure of the server");
  const bool is_cut = engine == Engine::kWaits;
  if (response.content_type == "text/event-stream") {
    check(response.is_whole || is_cut, "an answer is whole");
    check_stream(response, is_cut);
    return;
  }
  check(response.is_whole, "a body is whole");
  if (response.is_to_head) {
    return;
  }
  const json body = json::parse(response.body, nullptr, false);
  check(body.is_object(), "a body is a JSON object");
  if (response.status >= 400) {
    const json error = body.value("error", json::object());
    check(
        !error.value("message", "").empty() && !error.value("type", "").empty(),
        "a failure says what is wrong");
  }
}

size_t count_of(std::string_view word, std::string_view bytes) {
  size_t count = 0;
  for (size_t at = bytes.find(word); at != std::string_view::npos;
       at = bytes.find(word, at + word.size())) {
    ++count;
  }
  return count;
}

void check_still_serves(TestServer& server) {
  constexpr std::string_view kRequest =
      "POST /v1/chat/completions HTTP/1.1\r\n"
      "Host: test\r\n"
      "Content-Type: application/json\r\n"
      "Content-Length: 44\r\n\r\n"
      R"({"messages":[{"role":"user","content":"a"}]})";
  server.generator.engine = Engine::kAnswers;
  Client client(server);
  client.send(kRequest, SIZE_MAX);
  const auto responses = read_responses(client.finish(), 0);
  check(responses.size() == 1, "a good request gets one answer");
  check(responses[0].status == 200, "a good request is answered");
  check(
      responses[0].body.find("Paris") != std::string::npos,
      "the answer is the engine's");
}

} // namespace
} // namespace ingle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ingle::set_log_level(ingle::LogLevel::kOff);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingle;
  static TestServer server;
  if (size == 0) {
    return 0;
  }
  const Behaviour behaviour = behaviour_of(data[0]);
  const std::string_view bytes = input_text(data + 1, size - 1);
  server.generator.engine = behaviour.engine;
  Client client(server);
  client.send(bytes, behaviour.piece);
  if (behaviour.closes_at_once) {
    client.close();
  } else {
    for (const HttpResponse& response :
         read_responses(client.finish(), count_of("HEAD ", bytes))) {
      check_response(response, behaviour.engine);
    }
  }
  check(server.generator.is_idle(), "no generation is without its client");
  check_still_serves(server);
  return 0;
}

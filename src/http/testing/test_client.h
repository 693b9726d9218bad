// A blocking HTTP client over a raw socket, which can also misbehave; for
// tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace ingle {

struct TestResponse {
  int status = 0; // 0: the connection ended before a whole head
  std::map<std::string, std::string> headers; // names in lower case
  std::string body; // chunks joined
  bool complete = false; // true iff the body ended as its head said
};

// Every read gives up after ten seconds, or what wait_at_most() says.
class TestClient {
 public:
  explicit TestClient(uint16_t port, int receive_buffer = 0);

  void wait_at_most(std::chrono::seconds time);

  // False: the other side has closed.
  bool send(std::string_view bytes);
  TestResponse read_response(bool head_only = false);
  // Everything up to and including `marker`, or up to the end.
  std::string read_until(std::string_view marker);
  std::string read_to_end();
  // True iff the server closes, with nothing more to read.
  bool at_end();

  void close();
  void reset(); // close with RST
  void close_sending_half();

 private:
  bool fill(); // reads once more; false: end or timeout
  std::string take(size_t bytes);
  std::string take_chunks(bool& complete);

  UniqueFd socket_;
  std::string received_; // not taken yet
};

std::string get(std::string_view path);
std::string post(
    std::string_view path,
    std::string_view body,
    std::string_view headers = "");

// A chat of one user message, with more fields (`,"stream":true`).
std::string chat_body(std::string_view fields = "");

// One request on a connection of its own.
TestResponse exchange(uint16_t port, std::string_view request);

} // namespace ingle

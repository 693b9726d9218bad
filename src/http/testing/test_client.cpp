#include "http/testing/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdlib>

namespace ingle {
namespace {

constexpr size_t kReadBytes = 16384;

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return text;
}

} // namespace

TestClient::TestClient(uint16_t port, int receive_buffer)
    : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  wait_at_most(std::chrono::seconds(10));
  if (receive_buffer > 0) {
    ::setsockopt(
        socket_.get(),
        SOL_SOCKET,
        SO_RCVBUF,
        &receive_buffer,
        sizeof(receive_buffer));
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(
          socket_.get(),
          reinterpret_cast<const sockaddr*>(&address),
          sizeof(address)) != 0) {
    socket_.reset();
  }
}

void TestClient::wait_at_most(std::chrono::seconds time) {
  const timeval timeout = {time.count(), 0};
  ::setsockopt(
      socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  ::setsockopt(
      socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

bool TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool TestClient::fill() {
  char buffer[kReadBytes];
  const ssize_t count = ::recv(socket_.get(), buffer, kReadBytes, 0);
  if (count <= 0) {
    return false;
  }
  received_.append(buffer, static_cast<size_t>(count));
  return true;
}

std::string TestClient::take(size_t bytes) {
  while (received_.size() < bytes && fill()) {
  }
  const std::string taken = received_.substr(0, bytes);
  received_.erase(0, taken.size());
  return taken;
}

std::string TestClient::read_until(std::string_view marker) {
  size_t at = received_.find(marker);
  while (at == std::string::npos && fill()) {
    at = received_.find(marker);
  }
  return take(at == std::string::npos ? received_.size() : at + marker.size());
}

std::string TestClient::read_to_end() {
  while (fill()) {
  }
  return take(received_.size());
}

bool TestClient::at_end() {
  char byte;
  if (!received_.empty()) {
    return false;
  }
  // A server that closes with bytes of ours unread resets the connection.
  const ssize_t count = ::recv(socket_.get(), &byte, 1, 0);
  return count == 0 || (count < 0 && errno == ECONNRESET);
}

std::string TestClient::take_chunks(bool& complete) {
  std::string body;
  while (true) {
    const std::string line = read_until("\r\n");
    if (!line.ends_with("\r\n")) {
      return body;
    }
    const size_t size = std::strtoul(line.c_str(), nullptr, 16);
    const std::string chunk = take(size + 2);
    if (chunk.size() != size + 2) {
      return body;
    }
    if (size == 0) {
      complete = true;
      return body;
    }
    body.append(chunk, 0, size);
  }
}

TestResponse TestClient::read_response(bool head_only) {
  TestResponse response;
  const std::string head = read_until("\r\n\r\n");
  if (!head.ends_with("\r\n\r\n") || !head.starts_with("HTTP/1.1 ")) {
    return response;
  }
  response.status = std::atoi(head.c_str() + 9);
  size_t at = head.find("\r\n") + 2;
  while (head.compare(at, 2, "\r\n") != 0) {
    const size_t end = head.find("\r\n", at);
    const size_t colon = head.find(": ", at);
    response.headers[lower(head.substr(at, colon - at))] =
        head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  if (head_only) {
    response.complete = true;
  } else if (response.headers.contains("content-length")) {
    const size_t size = std::stoul(response.headers["content-length"]);
    response.body = take(size);
    response.complete = response.body.size() == size;
  } else if (response.headers.contains("transfer-encoding")) {
    response.body = take_chunks(response.complete);
  } else {
    response.body = read_to_end();
    response.complete = true;
  }
  return response;
}

void TestClient::close() {
  socket_.reset();
}

void TestClient::reset() {
  const linger at_once = {1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  socket_.reset();
}

void TestClient::close_sending_half() {
  ::shutdown(socket_.get(), SHUT_WR);
}

std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n";
}

std::string
post(std::string_view path, std::string_view body, std::string_view headers) {
  std::string request = "POST " + std::string(path) + " HTTP/1.1\r\n";
  request += "Host: test\r\nContent-Type: application/json\r\n";
  request += headers;
  request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  request += body;
  return request;
}

std::string chat_body(std::string_view fields) {
  return R"({"messages":[{"role":"user","content":"hi"}])" +
      std::string(fields) + "}";
}

TestResponse exchange(uint16_t port, std::string_view request) {
  TestClient client(port);
  client.send(request);
  return client.read_response();
}

} // namespace ingle

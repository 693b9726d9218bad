#include "http/reply.h"

#include <charconv>

namespace ingle {
namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return ""; // a status needs no words
  }
}

std::string_view connection_value(const WireFormat& format) {
  return format.keep_alive ? "keep-alive" : "close";
}

} // namespace

std::string to_wire(const Reply& reply, const WireFormat& format) {
  std::string wire = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  wire += reason_phrase(reply.status);
  wire += "\r\nContent-Type: ";
  wire += reply.content_type;
  wire += "\r\nContent-Length: " + std::to_string(reply.body.size());
  wire += "\r\nConnection: ";
  wire += connection_value(format);
  for (const auto& [name, value] : reply.headers) {
    wire += "\r\n";
    wire += name;
    wire += ": " + value;
  }
  wire += "\r\n\r\n";
  if (!format.head_only) {
    wire += reply.body;
  }
  return wire;
}

std::string stream_head(std::string_view request_id, const WireFormat& format) {
  std::string wire =
      "HTTP/1.1 200 OK\r\n"
      "Content-Type: text/event-stream\r\n"
      "Cache-Control: no-cache\r\n"
      "Connection: ";
  wire += connection_value(format);
  if (format.chunked) {
    wire += "\r\nTransfer-Encoding: chunked";
  }
  wire += "\r\nx-request-id: ";
  wire += request_id;
  wire += "\r\n\r\n";
  return wire;
}

std::string stream_piece(std::string_view bytes, const WireFormat& format) {
  if (bytes.empty() || !format.chunked) {
    return std::string(bytes);
  }
  char digits[16];
  const auto end = std::to_chars(digits, digits + 16, bytes.size(), 16).ptr;
  std::string wire(digits, end);
  wire += "\r\n";
  wire += bytes;
  wire += "\r\n";
  return wire;
}

std::string_view stream_tail(const WireFormat& format) {
  return format.chunked ? "0\r\n\r\n" : "";
}

} // namespace ingle

// What goes back over the wire, as bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingle {

struct Reply {
  int status = 200;
  std::string body;
  std::string_view content_type = "application/json";
  std::vector<std::pair<std::string_view, std::string>> headers;
};

// How the client's connection goes on, and what it can read.
struct WireFormat {
  bool keep_alive = true;
  bool head_only = false; // HEAD: the headers of the body, without it
  bool chunked = true; // a stream in chunks; else it ends with the connection
};

// A whole response.
std::string to_wire(const Reply& reply, const WireFormat& format);

// The head of a stream of server-sent events.
std::string stream_head(std::string_view request_id, const WireFormat& format);
// A piece of a stream; nothing for no bytes (an empty chunk ends a stream).
std::string stream_piece(std::string_view bytes, const WireFormat& format);
std::string_view stream_tail(const WireFormat& format);

} // namespace ingle

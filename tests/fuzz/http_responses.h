// Reads what a server sent, as strictly as a proxy would.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ingle {

struct HttpResponse {
  int status = 0;
  std::string content_type;
  std::string body; // chunks joined
  bool is_whole = false; // false: the bytes end before the body does
  bool is_to_head = false; // the body was left out
};

// The final responses in `bytes`, one after another; 100 Continue is left out.
// At most `heads` bodies may be missing: as many as a HEAD asked for. Ends the
// process where `bytes` are anything else.
std::vector<HttpResponse> read_responses(std::string_view bytes, size_t heads);

} // namespace ingle

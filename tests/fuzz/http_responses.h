// Reads what a server sent, as strictly as a proxy would.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingle {

struct HttpResponse {
  int status = 0;
  std::string content_type;
  std::string body; // chunks joined
  bool is_whole = false; // false: the bytes end before the body does
};

// The final responses in `bytes`, one after another; 100 Continue is left out.
// A body may be missing where `may_be_head` says that a HEAD was among the
// requests. Ends the process where `bytes` are anything else.
std::vector<HttpResponse> read_responses(
    std::string_view bytes,
    bool may_be_head);

} // namespace ingle

// What a hub says of a model, and the files that it gives.
//
// The interface is the public hub's: GET /api/models/ORG/NAME/revision/REV
// lists a revision's files, and /ORG/NAME/resolve/COMMIT/FILE is a file, with
// its hash in the field "etag" (or, where the file is elsewhere,
// "x-linked-etag" beside the redirect).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "hub/http_client.h"
#include "hub/names.h"

namespace ingle {

struct HubSettings {
  std::string endpoint; // "https://hub.example", without a slash at its end
  std::string token; // empty: none
  // Waits that long before another try, `why` being what went wrong; false
  // where the wait was ended by `stop`.
  std::function<bool(std::chrono::seconds, const std::string& why)> wait;
  std::stop_token stop;
};

struct HubListing {
  std::string commit;
  std::vector<std::string> files; // paths, as the hub gives them: unchecked
};

struct HubFile {
  std::string path; // safe, see is_safe_path()
  std::string etag; // 40 or 64 hexadecimal digits, see ContentHash
  uint64_t size = 0; // bytes

  bool operator==(const HubFile&) const = default;
};

// Redirects are followed, a few. The token goes to the endpoint's own scheme,
// host and port and nowhere else, and from https nothing leads to http. What
// may pass (a cut connection, 429, 5xx) is tried again, three times, after the
// time that the server asks for or 1, 2 and 4 seconds.
//
// Threads: one. `client` outlives it.
// Errors:  kNotFound (no such repo, revision or file), kUnsupported (gated, or
//          the token does not open it; an answer without a hash),
//          kOverloaded (429 in spite of waiting), kIo and kTimeout (the
//          network, the server), kCorruption (an answer that makes no sense),
//          kCancelled. One line each, which names the model and what to do.
class Hub {
 public:
  // The bytes of a file that start at `offset`.
  using Body = std::function<Status(uint64_t offset, ByteView bytes)>;

  Hub(HttpClient& client, HubSettings settings);

  Result<HubListing> list(const HubModel& model);
  Result<HubFile> describe(
      const HubModel& model,
      const std::string& commit,
      const std::string& path);
  // A file that is small.
  Result<std::string>
  read(const HubModel& model, const std::string& commit, const HubFile& file);
  // The file from byte `first_byte()` on, asked again before each try; or from
  // 0 where the server does as it likes. What `body` returns other than kOk
  // ends it. Errors: as above, kIo where the file ended early.
  Status fetch(
      const HubModel& model,
      const std::string& commit,
      const HubFile& file,
      const std::function<uint64_t()>& first_byte,
      const Body& body);

 private:
  // One try, redirects included.
  struct Attempt {
    Result<HttpHead> head;
    bool may_retry = false;
  };

  Attempt follow(HttpRequest request, const HttpBody& body);
  Attempt fetch_once(
      const std::string& url,
      const HubFile& file,
      uint64_t first_byte,
      const Body& body);
  Result<HttpHead> retry(const std::function<Attempt()>& attempt);
  Result<std::string> read_text(const HubModel& model, const std::string& url);
  std::string file_url(
      const HubModel& model,
      const std::string& commit,
      const std::string& path) const;
  // kOk for a 2xx, else what the answer means.
  Status judge(const HttpHead& head, const HubModel& model) const;
  Status judge_missing(const HttpHead& head, const HubModel& model) const;
  Status judge_forbidden(const HttpHead& head, const HubModel& model) const;

  HttpClient& client_;
  const HubSettings settings_;
};

} // namespace ingle

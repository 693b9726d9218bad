#include "hub/curl_client.h"

#include <algorithm>
#include <array>

#include <curl/curl.h>

#include "hub/url.h"

namespace ingle {
namespace {

constexpr long kConnectSeconds = 30;
constexpr long kSilenceSeconds = 60; // then it is given up
constexpr long kBufferBytes = 256 << 10;

struct HandleDeleter {
  void operator()(CURL* handle) const {
    curl_easy_cleanup(handle);
  }
  void operator()(curl_slist* list) const {
    curl_slist_free_all(list);
  }
};
using Handle = std::unique_ptr<CURL, HandleDeleter>;
using FieldList = std::unique_ptr<curl_slist, HandleDeleter>;

// What curl's callbacks need of one exchange.
struct Exchange {
  CURL* handle;
  const HttpBody& body;
  const std::stop_token& stop;
  HttpHead head;
  Status refused; // what `body` returned
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

void read_result(Exchange& exchange) {
  long status = 0;
  curl_easy_getinfo(exchange.handle, CURLINFO_RESPONSE_CODE, &status);
  exchange.head.status = static_cast<int>(status);
  char* redirect = nullptr;
  curl_easy_getinfo(exchange.handle, CURLINFO_REDIRECT_URL, &redirect);
  exchange.head.redirect = redirect == nullptr ? "" : redirect;
  curl_off_t seconds = 0;
  curl_easy_getinfo(exchange.handle, CURLINFO_RETRY_AFTER, &seconds);
  if (seconds > 0) {
    exchange.head.retry_after = std::chrono::seconds(seconds);
  }
}

size_t on_field(char* data, size_t, size_t size, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  const std::string_view line(data, size);
  if (line.starts_with("HTTP/")) {
    exchange.head.fields.clear(); // an interim answer, or a proxy's, was before
    return size;
  }
  if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
    std::string name(trimmed(line.substr(0, colon)));
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    exchange.head.fields[name] = trimmed(line.substr(colon + 1));
  }
  return size;
}

size_t on_body(char* data, size_t, size_t size, void* user) {
  Exchange& exchange = *static_cast<Exchange*>(user);
  if (exchange.head.status == 0) {
    read_result(exchange);
  }
  exchange.refused =
      exchange.body(exchange.head, as_bytes(std::string_view(data, size)));
  return exchange.refused.is_ok() ? size : CURL_WRITEFUNC_ERROR;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Exchange*>(user)->stop.stop_requested() ? 1 : 0;
}

Status failure_of(CURLcode code, const std::string& url, const char* detail) {
  const std::string message = shown_url(url) + ": " +
      (*detail != '\0' ? detail : curl_easy_strerror(code));
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
      return Status::cancelled("interrupted");
    case CURLE_OPERATION_TIMEDOUT:
      return {StatusCode::kTimeout, message};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return Status::io(message + " (is the network there?)");
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
      return Status::unsupported(message);
    default:
      return Status::io(message);
  }
}

class CurlClient final : public HttpClient {
 public:
  CurlClient(Handle handle, std::string user_agent)
      : handle_(std::move(handle)), user_agent_(std::move(user_agent)) {}

  Result<HttpHead> exchange(
      const HttpRequest& request,
      const HttpBody& body,
      const std::stop_token& stop) override {
    Exchange exchange{handle_.get(), body, stop, {}, {}};
    detail_[0] = '\0';
    const FieldList fields = fields_of(request);
    curl_easy_reset(handle_.get()); // keeps connections
    set(CURLOPT_ERRORBUFFER, detail_.data());
    set_limits();
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_NOBODY, request.head_only ? 1L : 0L);
    set(CURLOPT_HTTPHEADER, fields.get());
    const std::string range = std::to_string(request.first_byte) + "-";
    if (request.first_byte > 0) {
      set(CURLOPT_RANGE, range.c_str());
    }
    set(CURLOPT_HEADERFUNCTION, on_field);
    set(CURLOPT_HEADERDATA, &exchange);
    set(CURLOPT_WRITEFUNCTION, on_body);
    set(CURLOPT_WRITEDATA, &exchange);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, on_progress);
    set(CURLOPT_XFERINFODATA, &exchange);
    const CURLcode code = curl_easy_perform(handle_.get());
    if (!exchange.refused.is_ok()) {
      return exchange.refused;
    }
    if (code != CURLE_OK) {
      return failure_of(code, request.url, detail_.data());
    }
    read_result(exchange);
    return std::move(exchange.head);
  }

 private:
  // Of types that the option takes: curl does not check them here.
  template <typename T>
  void set(CURLoption option, T value) {
    curl_easy_setopt(handle_.get(), option, value);
  }

  void set_limits() {
    set(CURLOPT_USERAGENT, user_agent_.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
    set(CURLOPT_BUFFERSIZE, kBufferBytes);
  }

  static FieldList fields_of(const HttpRequest& request) {
    // The hashes and sizes are those of the files as they are.
    curl_slist* list = curl_slist_append(nullptr, "Accept-Encoding: identity");
    if (!request.token.empty()) {
      const std::string field = "Authorization: Bearer " + request.token;
      list = curl_slist_append(list, field.c_str());
    }
    return FieldList(list);
  }

  std::array<char, CURL_ERROR_SIZE> detail_{}; // outlives the handle
  Handle handle_;
  const std::string user_agent_;
};

} // namespace

Result<std::unique_ptr<HttpClient>> make_curl_client(std::string user_agent) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return Status::internal("libcurl does not start");
  }
  Handle handle(curl_easy_init());
  if (handle == nullptr) {
    return Status::internal("libcurl does not start");
  }
  return std::unique_ptr<HttpClient>(
      std::make_unique<CurlClient>(std::move(handle), std::move(user_agent)));
}

} // namespace ingle

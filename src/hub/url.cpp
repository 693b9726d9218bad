#include "hub/url.h"

#include <algorithm>
#include <memory>

#include <curl/curl.h>

namespace ingle {
namespace {

struct CurlFree {
  void operator()(char* text) const {
    curl_free(text);
  }
  void operator()(CURLU* url) const {
    curl_url_cleanup(url);
  }
};

std::optional<std::string> part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) {
    return std::nullopt;
  }
  const std::unique_ptr<char, CurlFree> owned(text);
  return std::string(text);
}

} // namespace

std::optional<std::string> origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, CurlFree> parsed(curl_url());
  if (parsed == nullptr ||
      curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return std::nullopt;
  }
  const auto scheme = part(parsed.get(), CURLUPART_SCHEME);
  auto host = part(parsed.get(), CURLUPART_HOST);
  const auto port = part(parsed.get(), CURLUPART_PORT);
  if (!host || !port || (scheme != "http" && scheme != "https")) {
    return std::nullopt;
  }
  std::ranges::transform(*host, host->begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return *scheme + "://" + *host + ":" + *port;
}

std::string escape_for_url(std::string_view text) {
  // curl takes a length of 0 for "up to the end of the string".
  if (text.empty()) {
    return {};
  }
  const std::unique_ptr<char, CurlFree> escaped(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())));
  return escaped == nullptr ? std::string() : std::string(escaped.get());
}

std::string shown_url(std::string_view url) {
  return std::string(url.substr(0, url.find_first_of("?#")));
}

} // namespace ingle

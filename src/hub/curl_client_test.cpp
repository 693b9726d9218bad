#include "hub/curl_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

Status failure_of(const std::string& url, const std::stop_token& stop = {}) {
  const auto client = make_curl_client("ingle-tests");
  EXPECT_TRUE(client.is_ok());
  HttpRequest request;
  request.url = url;
  return (*client)
      ->exchange(
          request, [](const HttpHead&, ByteView) { return Status::ok(); }, stop)
      .status();
}

// tests/e2e/test_hub.py talks to a server.
TEST(CurlClient, NoServerIsAnErrorOfTheNetwork) {
  const Status status = failure_of("http://127.0.0.1:1/path?signature=x");
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(
      status.message(), testing::StartsWith("http://127.0.0.1:1/path: "));
}

TEST(CurlClient, FilesOfThisMachineAreNotRead) {
  EXPECT_EQ(failure_of("file:///etc/passwd").code(), StatusCode::kUnsupported);
}

} // namespace
} // namespace ingle

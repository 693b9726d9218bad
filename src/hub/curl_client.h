// HTTP by libcurl: TLS, proxies from the environment, kept connections.
#pragma once

#include <memory>
#include <string>

#include "hub/http_client.h"

namespace ingle {

// `user_agent` names the program to servers. Errors: kInternal.
Result<std::unique_ptr<HttpClient>> make_curl_client(std::string user_agent);

} // namespace ingle

#include "cli/hub_session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>

#include <unistd.h>

#include "cli/console.h"

namespace ingle {
namespace {

std::string machine_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

bool is_running(int process) {
  return ::kill(process, 0) == 0 || errno == EPERM;
}

} // namespace

Processes this_process() {
  return {{static_cast<int>(::getpid()), machine_name()}, is_running};
}

Result<std::string> hub_token(const Environment& env) {
  std::string token = env.hub.token;
  std::string origin = "HF_TOKEN";
  if (token.empty() && env.fs.exists(env.hub.token_file)) {
    origin = env.hub.token_file;
    INGLE_ASSIGN_OR_RETURN(token, env.fs.read(origin));
  }
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) {
    token.pop_back();
  }
  const bool is_clean =
      std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!is_clean) {
    return Status::invalid_request(
        origin + ": is no token; it has to be one word of printable ASCII");
  }
  return token;
}

bool wait_for_hub(
    std::chrono::seconds time,
    const std::string& why,
    std::stop_token stop) {
  if (!stop.stop_requested()) {
    tell(why + "; trying again in " + std::to_string(time.count()) + " s");
  }
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

} // namespace ingle

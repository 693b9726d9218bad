#include "cli/environment.h"

#include <cstdlib>

namespace ingle {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

} // namespace

std::string home_folder() {
  if (std::string home = variable("INGLE_HOME"); !home.empty()) {
    return home;
  }
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) {
    return join_path(data, "ingle");
  }
  return join_path(user_home_folder(), ".local/share/ingle");
}

HubPlaces hub_places() {
  std::string home = variable("HF_HOME");
  if (home.empty()) {
    std::string caches = variable("XDG_CACHE_HOME");
    if (caches.empty()) {
      caches = join_path(user_home_folder(), ".cache");
    }
    home = join_path(caches, "huggingface");
  }
  HubPlaces places{
      variable("HF_ENDPOINT"),
      variable("HF_HUB_CACHE"),
      variable("HF_TOKEN"),
      variable("HF_TOKEN_PATH")};
  if (places.endpoint.empty()) {
    places.endpoint = "https://huggingface.co";
  }
  while (places.endpoint.ends_with('/')) {
    places.endpoint.pop_back();
  }
  if (places.cache.empty()) {
    places.cache = join_path(home, "hub");
  }
  if (places.token_file.empty()) {
    places.token_file = join_path(home, "token");
  }
  return places;
}

std::string user_home_folder() {
  return variable("HOME");
}

std::string python_program() {
  const std::string python = variable("INGLE_PYTHON");
  return python.empty() ? "python3" : python;
}

std::string wanted_isa() {
  return variable("INGLE_ISA");
}

std::string models_folder(const Environment& env) {
  return join_path(env.home, "models");
}

std::string adapters_folder(const Environment& env) {
  return join_path(env.home, "adapters");
}

} // namespace ingle

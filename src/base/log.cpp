#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace ingle {
namespace {

spdlog::logger& logger() {
  static const auto kInstance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "ingle", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *kInstance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

void write(LogLevel level, std::string_view line) {
  logger().log(
      to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

} // namespace

void set_log_level(LogLevel level) {
  logger().set_level(to_spdlog(level));
}

void log_debug(std::string_view line) {
  write(LogLevel::kDebug, line);
}
void log_info(std::string_view line) {
  write(LogLevel::kInfo, line);
}
void log_warning(std::string_view line) {
  write(LogLevel::kWarning, line);
}
void log_error(std::string_view line) {
  write(LogLevel::kError, line);
}

} // namespace ingle

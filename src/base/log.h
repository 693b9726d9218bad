// Log lines for the person who runs the server, on standard error.
//
// At default level no prompt, completion or token is ever logged.
#pragma once

#include <string>
#include <string_view>

namespace ingle {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Threads: any, also while others log.
void set_log_level(LogLevel level);

void log_debug(std::string_view line);
void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

} // namespace ingle

// A command's result for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/console.h"

namespace ingle {

// Prints `value` on a line of its own, or indented over several. Names from
// files need not be UTF-8: what isn't is replaced.
inline void print_json(const nlohmann::ordered_json& value, int indent = -1) {
  print_line(value.dump(
      indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

} // namespace ingle

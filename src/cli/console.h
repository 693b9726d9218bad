// What a command says: results on standard output, the rest on standard error.
#pragma once

#include <string_view>

#include "base/status.h"

namespace ingle {

// Written and flushed at once, so that a pipe sees it.
void print(std::string_view text);
void print_line(std::string_view line);

// "ingle: message" on standard error; returns the exit code that goes with it:
// 1, or 2 where the command line was wrong.
int report(const Status& status);

// "1.2 GB", "93.8 MB": decimal units.
std::string human_bytes(double bytes);

} // namespace ingle

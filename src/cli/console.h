// What a command says: results on standard output, the rest on standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ingle {

// Exit codes beside 0.
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130; // 128 + SIGINT, as shells report it

// Written and flushed at once, so that a pipe sees it. False where standard
// output can't be written (any more): see output_status().
bool print(std::string_view text);
bool print_line(std::string_view line);

// Not ok where something could not be written to standard output.
Status output_status();

// "ingle: message" on standard error, control characters escaped; returns the
// exit code that goes with it.
int report(const Status& status);

// The same for what is no failure, in the place of a progress bar's line.
void tell(std::string_view message);

// The text without the control characters that would move a terminal's cursor
// or change its state: those other than newline and tab. `text` is whole
// characters.
std::string safe_for_terminal(std::string_view text);

// "1.2 GB", "93.8 MB": decimal units.
std::string human_bytes(double bytes);

std::string join(const std::vector<std::string>& words, std::string_view gap);

} // namespace ingle

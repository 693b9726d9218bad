# Run as a script: writes the header HEADER with the commit that the checkout
# SOURCE is at; "unknown" where it is no checkout.
execute_process(
  COMMAND git rev-parse HEAD
  WORKING_DIRECTORY "${SOURCE}"
  OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_QUIET
  RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(WRITE "${HEADER}" "// Made by cmake/ingle_commit.cmake.
#pragma once

namespace ingle {

// That the program was built from; changes on top of it are not told.
inline constexpr const char* kCommit = \"${commit}\";

} // namespace ingle
")

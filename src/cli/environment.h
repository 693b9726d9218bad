// What every command gets from main(): disk, time and places.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/file_system.h"

namespace ingle {

struct Environment {
  FileSystem& fs;
  const Clock& clock;
  std::string home; // the folder that holds what ingle keeps; may not exist
  std::string python; // the interpreter that `get` downloads with
  std::string isa{}; // that the CPU kernels are to use; empty: the quickest
};

// $INGLE_HOME, else $XDG_DATA_HOME/ingle, else ~/.local/share/ingle.
std::string home_folder();
// $INGLE_PYTHON, else python3.
std::string python_program();
// $INGLE_ISA, which may be empty.
std::string wanted_isa();

// $HOME; empty where it isn't set.
std::string user_home_folder();

// Where imported models are kept.
std::string models_folder(const Environment& env);

} // namespace ingle

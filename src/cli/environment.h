// What every command gets from main(): disk, time and places.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/file_system.h"

namespace ingle {

// The model hub, and where what comes from it is kept: as the hub's own
// libraries have it, so that they and ingle share one cache.
struct HubPlaces {
  std::string endpoint; // without a slash at its end
  std::string cache; // folder; may not exist
  std::string token; // empty: what `token_file` holds, if it is there
  std::string token_file;
};

struct Environment {
  FileSystem& fs;
  const Clock& clock;
  std::string home; // the folder that holds what ingle keeps; may not exist
  std::string python; // the interpreter that `get` downloads with
  std::string isa{}; // that the CPU kernels are to use; empty: the quickest
  HubPlaces hub{};
};

// $INGLE_HOME, else $XDG_DATA_HOME/ingle, else ~/.local/share/ingle.
std::string home_folder();
// $INGLE_PYTHON, else python3.
std::string python_program();
// $INGLE_ISA, which may be empty.
std::string wanted_isa();

// $HF_ENDPOINT, else the public hub; $HF_HUB_CACHE, else hub/ in $HF_HOME, else
// in ~/.cache/huggingface; $HF_TOKEN; $HF_TOKEN_PATH, else token in $HF_HOME.
HubPlaces hub_places();

// $HOME; empty where it isn't set.
std::string user_home_folder();

// Where imported models are kept.
std::string models_folder(const Environment& env);

// Where adapters are kept.
std::string adapters_folder(const Environment& env);

} // namespace ingle

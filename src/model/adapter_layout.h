// Where adapters may add something to a model: its linears, by the modules of
// the model's files.
//
// Threads: any; const after the model has loaded. No MLX.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace ingle {

// Of a tensor: [begin, begin + count).
struct RowRange {
  int begin = 0;
  int count = 0;
};

// A linear, and the module that it is, or is a part of.
struct LinearPlace {
  std::string module; // its path in the model's files
  int in = 0;
  int module_out = 0; // of the whole module
  std::vector<RowRange> rows; // of the module's outputs; the linear's, in order
  bool takes_adapters = false; // what computes it adds what they say
};

struct AdapterLayout {
  std::vector<LinearPlace> linears; // by Linear::number
  std::set<std::string> modules; // all that the model has, linears or not
};

} // namespace ingle

// How a model is to be run.
#pragma once

#include <string>

#include "model/numerics.h"

namespace ingle {

struct RunOptions {
  Numerics numerics = Numerics::kExact;
  int threads = 0; // that compute; 0: one for each physical core
  std::string isa{}; // of the CPU kernels, as choose_isa() takes it
};

} // namespace ingle

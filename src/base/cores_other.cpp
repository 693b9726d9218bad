#include "base/cores.h"

#include <algorithm>
#include <thread>

namespace ingle {

int physical_cores(FileSystem& /*fs*/) {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

} // namespace ingle

#include "cli/machine.h"

#include <unistd.h>

namespace ingle {

uint64_t machine_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)) *
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
}

} // namespace ingle

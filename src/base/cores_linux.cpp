#include "base/cores.h"

#include <algorithm>
#include <set>
#include <string>

#include <sched.h>

namespace ingle {

int physical_cores(FileSystem& fs) {
  cpu_set_t allowed; // a container or taskset may leave us a part
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return 1;
  }
  std::set<std::string> cores;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) {
      continue;
    }
    const std::string name = "cpu" + std::to_string(cpu);
    const auto siblings = fs.read(
        "/sys/devices/system/cpu/" + name + "/topology/thread_siblings_list");
    cores.insert(siblings.is_ok() ? *siblings : name);
  }
  return std::max(1, static_cast<int>(cores.size()));
}

} // namespace ingle

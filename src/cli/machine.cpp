#include "cli/machine.h"

#include <fstream>
#include <optional>

#include <sys/resource.h>
#include <unistd.h>

namespace ingle {
namespace {

// What follows the first line's "name:" in a file of /proc, which has no size
// and is not there on every system.
std::optional<std::string> proc_field(
    const char* path,
    const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string::npos) {
      const size_t begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return std::nullopt;
}

} // namespace

uint64_t machine_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)) *
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
}

uint64_t peak_memory() {
  // getrusage()'s would begin with the peak of who started us.
  if (const auto peak = proc_field("/proc/self/status", "VmHWM")) {
    return std::stoull(*peak) * 1024;
  }
  struct rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss); // macOS: bytes
}

std::string processor_name() {
  return proc_field("/proc/cpuinfo", "model name").value_or("unknown");
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    sets.push_back("avx2");
  }
  if (__builtin_cpu_supports("avx512f")) {
    sets.push_back("avx512");
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    sets.push_back("avx512-vnni");
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    sets.push_back("avx512-bf16");
  }
#elif defined(__aarch64__)
  sets.push_back("neon");
#endif
  return sets;
}

} // namespace ingle

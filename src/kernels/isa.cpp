#include "kernels/isa.h"

#include <algorithm>
#include <string>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace ingle {
namespace {

bool runs_here(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return true;
    case Isa::kNeon:
#if defined(__aarch64__) && defined(__linux__)
      return (getauxval(AT_HWCAP) & 1ul << 20) != 0; // HWCAP_ASIMDDP
#elif defined(__aarch64__)
      return true; // every Apple processor has the dot product
#else
      return false;
#endif
    case Isa::kAvx2:
#if defined(__x86_64__)
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
          __builtin_cpu_supports("f16c");
#else
      return false;
#endif
    case Isa::kAvx512:
#if defined(__x86_64__)
      return __builtin_cpu_supports("avx512f") &&
          __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vnni");
#else
      return false;
#endif
  }
  return false;
}

} // namespace

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kNeon:
      return "neon";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kPortable, Isa::kNeon, Isa::kAvx2, Isa::kAvx512}) {
    if (runs_here(isa)) {
      isas.push_back(isa);
    }
  }
  return isas;
}

Result<Isa> choose_isa(std::string_view wanted) {
  const std::vector<Isa> isas = supported_isas();
  if (wanted.empty()) {
    return isas.back();
  }
  std::string names;
  for (const Isa isa : isas) {
    if (to_string(isa) == wanted) {
      return isa;
    }
    names += names.empty() ? "" : ", ";
    names += to_string(isa);
  }
  return Status::invalid_request(
      "INGLE_ISA is '" + std::string(wanted) +
      "', which is not an instruction set that this processor has; it has " +
      names);
}

} // namespace ingle

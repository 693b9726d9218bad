// What the machine has, and what this process took of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingle {

// Bytes of memory, used or not.
uint64_t machine_memory();

// Bytes of memory that this process has had at most, shared pages included.
uint64_t peak_memory();

// "AMD EPYC 9655"; "unknown" where the system does not say.
std::string processor_name();

// Vector instructions that the processor has, of those that matter to us:
// "avx2", "avx512-vnni", ... Empty: none.
std::vector<std::string> instruction_sets();

} // namespace ingle

// What the machine has.
#pragma once

#include <cstdint>

namespace ingle {

// Bytes of memory, used or not.
uint64_t machine_memory();

} // namespace ingle

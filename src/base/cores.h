// How many threads can compute at the same time.
#pragma once

#include "base/file_system.h"

namespace ingle {

// Physical cores that this process may run on, at least 1. Two logical
// processors of one core count once; where the system does not say which are
// those, each counts.
int physical_cores(FileSystem& fs);

} // namespace ingle

#include "base/free_memory.h"

#include <cstdlib> // says whether it is glibc

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace ingle {

void give_back_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

} // namespace ingle

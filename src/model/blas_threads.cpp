#include "model/blas_threads.h"

#include <dlfcn.h>

namespace ingle {

void set_blas_threads(int threads) {
  using SetThreads = void (*)(int);
  if (void* symbol = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<SetThreads>(symbol)(threads);
  }
}

} // namespace ingle

// The threads of the library that dense matrix products end up in.
#pragma once

namespace ingle {

// For the whole process. Does nothing where the library is not OpenBLAS.
void set_blas_threads(int threads);

} // namespace ingle

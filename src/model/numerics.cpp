#include "model/numerics.h"

#include <mlx/device.h>

namespace ingle {

Numerics default_numerics() {
  namespace mx = mlx::core;
  return mx::default_device() == mx::Device::gpu ? Numerics::kNative
                                                 : Numerics::kNear;
}

} // namespace ingle

// What tests of every instruction set have.
#pragma once

#include <random>

#include <gtest/gtest.h>

#include "kernels/arena.h"
#include "kernels/kernel_set.h"

namespace ingle {

class KernelSetFixture : public testing::TestWithParam<Isa> {
 protected:
  const KernelSet& set() const {
    return kernel_set(GetParam());
  }
  static const KernelSet& portable() {
    return kernel_set(Isa::kPortable);
  }

  std::mt19937 random{7};
  Arena arena;
};

} // namespace ingle

#include "base/cores.h"

#include <thread>

#include <gtest/gtest.h>

namespace ingle {
namespace {

TEST(CoresTest, WithoutATopologyEachProcessorCounts) {
  const auto fs = make_memory_file_system();
  const int cores = physical_cores(*fs);
  EXPECT_GE(cores, 1);
  EXPECT_LE(cores, static_cast<int>(std::thread::hardware_concurrency()));
}

#if defined(__linux__)
TEST(CoresTest, ProcessorsOfOneCoreCountOnce) {
  const auto fs = make_memory_file_system();
  for (int cpu = 0; cpu < 1024; ++cpu) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology";
    ASSERT_TRUE(fs->create_directory(folder).is_ok());
    ASSERT_TRUE(write_file(
                    *fs,
                    join_path(folder, "thread_siblings_list"),
                    as_bytes("0-1023\n"))
                    .is_ok());
  }
  EXPECT_EQ(physical_cores(*fs), 1);
}
#endif

} // namespace
} // namespace ingle

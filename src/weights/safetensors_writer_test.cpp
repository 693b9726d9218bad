#include "weights/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_system_faulty.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

using testing::HasSubstr;

std::vector<TensorSpec> two_tensors() {
  return {
      {"w", TensorType::kU32, {1, 2}},
      {"none", TensorType::kU32, {0}},
      {"s", TensorType::kF16, {3}}};
}

Status write_two(FileSystem& fs) {
  INGLE_ASSIGN_OR_RETURN(
      auto writer, SafetensorsWriter::create(fs, "/f", two_tensors()));
  INGLE_RETURN_IF_ERROR(writer->append("w", as_bytes("abc")));
  INGLE_RETURN_IF_ERROR(writer->append("w", as_bytes("defgh")));
  INGLE_RETURN_IF_ERROR(writer->append("s", as_bytes("123456")));
  return writer->finish();
}

TEST(SafetensorsWriter, WritesTheExactBytes) {
  const auto fs = make_memory_file_system();
  ASSERT_TRUE(write_two(*fs).is_ok());
  const std::string header =
      R"({"__metadata__":{"format":"mlx"},)"
      R"("w":{"dtype":"U32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("none":{"dtype":"U32","shape":[0],"data_offsets":[8,8]},)"
      R"("s":{"dtype":"F16","shape":[3],"data_offsets":[8,14]}})";
  const size_t padded = (header.size() + 7) / 8 * 8;
  std::string expected = {static_cast<char>(padded), 0, 0, 0, 0, 0, 0, 0};
  expected += header + std::string(padded - header.size(), ' ');
  expected += "abcdefgh123456";
  EXPECT_EQ(*fs->read("/f"), expected);
}

TEST(SafetensorsWriter, ReaderReadsItBack) {
  const auto fs = make_memory_file_system();
  ASSERT_TRUE(write_two(*fs).is_ok());
  const std::string file = *fs->read("/f");
  const auto tensors = parse_safetensors(as_bytes(file), "/f");
  ASSERT_TRUE(tensors.is_ok()) << tensors.status().message();
  EXPECT_EQ(as_text(tensors->at("w").bytes), "abcdefgh");
  EXPECT_EQ(as_text(tensors->at("s").bytes), "123456");
}

TEST(SafetensorsWriter, RefusesWhatWasNotDeclared) {
  const auto fs = make_memory_file_system();
  auto writer = SafetensorsWriter::create(*fs, "/f", two_tensors());
  ASSERT_TRUE(writer.is_ok());
  EXPECT_THAT(
      (*writer)->append("s", as_bytes("1")).message(), HasSubstr("the turn"));
  EXPECT_THAT(
      (*writer)->append("w", as_bytes("123456789")).message(),
      HasSubstr("more bytes"));
  EXPECT_TRUE((*writer)->append("w", as_bytes("12345678")).is_ok());
  EXPECT_THAT((*writer)->finish().message(), HasSubstr("'s' are missing"));
}

TEST(SafetensorsWriter, RefusesBadDeclarations) {
  const auto fs = make_memory_file_system();
  const auto problem = [&](std::vector<TensorSpec> tensors) {
    return SafetensorsWriter::create(*fs, "/f", std::move(tensors))
        .status()
        .message();
  };
  EXPECT_THAT(
      problem({{"a", TensorType::kU8, {1}}, {"a", TensorType::kU8, {1}}}),
      HasSubstr("twice"));
  EXPECT_THAT(
      problem({{"a", TensorType::kU8, {1}}, {"b", TensorType::kF32, {1}}}),
      HasSubstr("aligned"));
  EXPECT_THAT(
      problem({{"a", TensorType::kU8, {INT64_MAX, 4}}}),
      HasSubstr("without a size"));
  EXPECT_FALSE(fs->exists("/f"));
}

TEST(SafetensorsWriter, EveryFailedCallIsReported) {
  for (uint64_t n = 1;; ++n) {
    const auto memory = make_memory_file_system();
    FaultyFileSystem faulty(*memory, n, StatusCode::kNoSpace);
    const Status status = write_two(faulty);
    if (status.is_ok()) {
      EXPECT_EQ(n, 8u); // create, 4 appends, sync and close were failed
      return;
    }
    EXPECT_EQ(status.code(), StatusCode::kNoSpace);
  }
}

} // namespace
} // namespace ingle

#include "weights/safetensors_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingle {
namespace {

using testing::HasSubstr;

std::string length_prefix(uint64_t length) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += static_cast<char>(length >> (8 * i));
  }
  return text;
}

std::string file_of(std::string_view header, size_t data_bytes) {
  return length_prefix(header.size()) + std::string(header) +
      std::string(data_bytes, '\x01');
}

// The failure of reading `file`; its message must be one line that names it.
Status failure(std::string_view file) {
  const auto parsed = parse_safetensors(as_bytes(file), "m.safetensors");
  EXPECT_FALSE(parsed.is_ok());
  const Status status = parsed.status();
  EXPECT_TRUE(status.message().starts_with("m.safetensors: "));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status;
}

std::string problem(std::string_view header, size_t data_bytes) {
  const Status status = failure(file_of(header, data_bytes));
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  return status.message();
}

TEST(Safetensors, ReadsAValidFile) {
  // The sane one among the broken: if this fails, the others prove nothing.
  const std::string file = file_of(
      R"({"__metadata__":{"format":"pt"},)"
      R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
      R"("empty":{"dtype":"I64","shape":[0,3],"data_offsets":[8,8]}}   )",
      10);
  const auto parsed = parse_safetensors(as_bytes(file), "m.safetensors");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ(parsed->at("b").type, TensorType::kF32);
  EXPECT_EQ(parsed->at("b").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(parsed->at("b").bytes.size(), 8u);
  EXPECT_EQ(parsed->at("a").bytes.size(), 2u);
  EXPECT_TRUE(parsed->at("a").shape.empty());
  EXPECT_TRUE(parsed->at("empty").bytes.empty());
}

TEST(Safetensors, MlxWritesNullWhereThereIsNoMetadata) {
  const auto parsed = parse_safetensors(
      as_bytes(file_of(
          R"({"__metadata__":null,)"
          R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
          4)),
      "m");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  EXPECT_EQ(parsed->size(), 1u);
}

TEST(Safetensors, NoTensorsIsValid) {
  EXPECT_TRUE(parse_safetensors(as_bytes(file_of("{}", 0)), "m").is_ok());
}

TEST(Safetensors, TooShortForTheLength) {
  for (size_t n = 0; n < 8; ++n) {
    EXPECT_EQ(failure(std::string(n, '\0')).code(), StatusCode::kCorruption);
  }
}

TEST(Safetensors, HeaderLengthPastTheEnd) {
  for (const uint64_t length :
       {uint64_t{3}, uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 7}) {
    EXPECT_THAT(
        failure(length_prefix(length) + "{}").message(),
        HasSubstr("cut short"));
  }
}

TEST(Safetensors, TruncatedAtEveryByte) {
  const std::string file =
      file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4);
  ASSERT_TRUE(parse_safetensors(as_bytes(file), "m").is_ok());
  for (size_t n = 0; n < file.size(); ++n) {
    EXPECT_EQ(
        failure(std::string_view(file).substr(0, n)).code(),
        StatusCode::kCorruption);
  }
}

TEST(Safetensors, HeaderIsNotAnObjectOfTensors) {
  EXPECT_THAT(problem("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(problem("", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem("{\"\xff\xfe\":1}", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem(R"({"a":1})", 0), HasSubstr("needs a dtype"));
  EXPECT_THAT(
      problem(std::string(100'000, '['), 0), HasSubstr("nested too deeply"));
  EXPECT_THAT(
      problem(R"({"__metadata__":{"n":1}})", 0), HasSubstr("map of strings"));
  EXPECT_THAT(
      problem(R"({"__metadata__":["n"]})", 0), HasSubstr("map of strings"));
  EXPECT_THAT(problem(R"({"__metadata__":1})", 0), HasSubstr("map of strings"));
}

TEST(Safetensors, DuplicateName) {
  EXPECT_THAT(
      problem(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
          R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2),
      HasSubstr("'a' stands twice"));
}

struct BadTensor {
  const char* name;
  const char* description;
  const char* problem;
};

class BadTensorTest : public testing::TestWithParam<BadTensor> {};

TEST_P(BadTensorTest, IsRefused) {
  EXPECT_THAT(
      problem(std::string("{\"a\":") + GetParam().description + "}", 8),
      HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    Safetensors,
    BadTensorTest,
    testing::Values(
        BadTensor{
            "OffsetsPastTheEnd",
            R"({"dtype":"U8","shape":[9],"data_offsets":[0,9]})",
            "ends at byte 9"},
        BadTensor{
            "OffsetsReversed",
            R"({"dtype":"U8","shape":[8],"data_offsets":[8,0]})",
            "ends before it begins"},
        BadTensor{
            "OffsetsNegative",
            R"({"dtype":"U8","shape":[8],"data_offsets":[-8,0]})",
            "not two offsets"},
        BadTensor{
            "OffsetsFractional",
            R"({"dtype":"U8","shape":[8],"data_offsets":[0,8.0]})",
            "not two offsets"},
        BadTensor{
            "OffsetsThree",
            R"({"dtype":"U8","shape":[8],"data_offsets":[0,8,8]})",
            "not two offsets"},
        BadTensor{
            "OffsetPastU64",
            R"({"dtype":"U8","shape":[8],"data_offsets":[0,99999999999999999999]})",
            "not two offsets"},
        BadTensor{
            "CountAgainstShape",
            R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
            "not what its shape"},
        BadTensor{
            "ShapeProductOverflows",
            R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})",
            "not what its shape"},
        BadTensor{
            "ShapeProductWrapsToTheRightSize",
            R"({"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]})",
            "not what its shape"},
        BadTensor{
            "DimensionNegative",
            R"({"dtype":"U8","shape":[-8],"data_offsets":[0,8]})",
            "not a size"},
        BadTensor{
            "DimensionPastI64",
            R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,8]})",
            "not a size"},
        BadTensor{
            "ShapeNotAnArray",
            R"({"dtype":"U8","shape":8,"data_offsets":[0,8]})",
            "not an array"},
        BadTensor{
            "DtypeNotAString",
            R"({"dtype":1,"shape":[8],"data_offsets":[0,8]})",
            "not a string"},
        BadTensor{
            "Hole",
            R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]})",
            "leaves a hole"},
        BadTensor{
            "TrailingBytes",
            R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})",
            "belong to no tensor"}),
    [](const auto& test) { return test.param.name; });

TEST(Safetensors, OverlappingTensors) {
  EXPECT_THAT(
      problem(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
          6),
      HasSubstr("'b' overlaps"));
}

TEST(Safetensors, UnknownDtypeIsNamed) {
  const Status status = failure(file_of(
      R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1));
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("'F8_E4M3'"));
}

class WeightFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fs_->create_directory("/m").is_ok());
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(*fs_, "/m/" + name, as_bytes(text)).is_ok());
  }
  void write_shard(const std::string& name, const std::string& tensor) {
    write(
        name,
        file_of(
            "{\"" + tensor +
                R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
            4));
  }
  Status open() {
    return WeightFolder::open(*fs_, "/m").status();
  }

  static constexpr const char* kIndex = "model.safetensors.index.json";
  std::unique_ptr<FileSystem> fs_ = make_memory_file_system();
};

TEST_F(WeightFolderTest, ReadsASingleFile) {
  write_shard("model.safetensors", "a");
  const auto folder = WeightFolder::open(*fs_, "/m");
  ASSERT_TRUE(folder.is_ok());
  EXPECT_EQ((*folder)->tensors().count("a"), 1u);
  EXPECT_EQ((*folder)->total_bytes(), 4u);
}

TEST_F(WeightFolderTest, ReadsShards) {
  write_shard("one.safetensors", "a");
  write_shard("two.safetensors", "b");
  write(
      kIndex,
      R"({"metadata":{"total_size":8},)"
      R"("weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const auto folder = WeightFolder::open(*fs_, "/m");
  ASSERT_TRUE(folder.is_ok()) << folder.status().message();
  EXPECT_EQ((*folder)->tensors().size(), 2u);
  EXPECT_EQ((*folder)->total_bytes(), 8u);
}

TEST_F(WeightFolderTest, EmptyFolderIsNotAModel) {
  EXPECT_EQ(open().code(), StatusCode::kNotFound);
  EXPECT_THAT(open().message(), HasSubstr("/m: has neither"));
}

TEST_F(WeightFolderTest, MissingShardIsNamed) {
  write_shard("one.safetensors", "a");
  write(
      kIndex,
      R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_EQ(open().code(), StatusCode::kNotFound);
  EXPECT_THAT(open().message(), HasSubstr("/m/two.safetensors"));
}

TEST_F(WeightFolderTest, IndexNamesATensorThatTheShardLacks) {
  write_shard("one.safetensors", "a");
  write(
      kIndex,
      R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})");
  EXPECT_EQ(open().code(), StatusCode::kCorruption);
  EXPECT_THAT(open().message(), HasSubstr("lacks tensor 'b'"));
}

TEST_F(WeightFolderTest, ShardHasATensorThatTheIndexPlacesElsewhere) {
  write_shard("one.safetensors", "a");
  write_shard("two.safetensors", "a");
  write(
      kIndex,
      R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_EQ(open().code(), StatusCode::kCorruption);
  EXPECT_THAT(open().message(), HasSubstr("does not place there"));
}

TEST_F(WeightFolderTest, ShardPathCannotLeaveTheFolder) {
  for (const std::string name :
       {"../x.safetensors", "/etc/passwd", "..", "", "a\\\\b", "d/x"}) {
    write(kIndex, "{\"weight_map\":{\"a\":\"" + name + "\"}}");
    EXPECT_EQ(open().code(), StatusCode::kCorruption);
    EXPECT_THAT(open().message(), HasSubstr("not a file name"));
  }
}

TEST_F(WeightFolderTest, ShardNameThatNoMessageCanShowIsRefused) {
  for (const std::string& name :
       {std::string("x\\n.safetensors"),
        std::string("\\u0000"),
        std::string("\\u007f"),
        std::string(256, 'x')}) {
    write(kIndex, R"({"weight_map":{"a":")" + name + R"("}})");
    EXPECT_EQ(open().code(), StatusCode::kCorruption);
    EXPECT_THAT(open().message(), HasSubstr("not a file name"));
    EXPECT_THAT(open().message(), Not(HasSubstr("\n")));
  }
}

TEST_F(WeightFolderTest, BrokenIndexIsNamed) {
  for (const char* text :
       {"",
        "{",
        "[]",
        "{}",
        R"({"weight_map":{}})",
        R"({"weight_map":[]})",
        R"({"weight_map":{"a":1}})"}) {
    write(kIndex, text);
    EXPECT_EQ(open().code(), StatusCode::kCorruption) << text;
    EXPECT_THAT(open().message(), HasSubstr(kIndex));
  }
}

TEST_F(WeightFolderTest, DamagedShardIsNamed) {
  write("one.safetensors", "garbage");
  write(kIndex, R"({"weight_map":{"a":"one.safetensors"}})");
  EXPECT_EQ(open().code(), StatusCode::kCorruption);
  EXPECT_THAT(open().message(), HasSubstr("/m/one.safetensors: "));
}

} // namespace
} // namespace ingle

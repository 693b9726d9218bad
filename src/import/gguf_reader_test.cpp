#include "import/gguf_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/testing/gguf_builder.h"

namespace ingle {
namespace {

using testing::HasSubstr;

Status failure(const std::string& file) {
  const auto parsed = GgufFile::parse(as_bytes(file), "m.gguf");
  EXPECT_FALSE(parsed.is_ok());
  const Status status = parsed.status();
  EXPECT_TRUE(status.message().starts_with("m.gguf: ")) << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status;
}

std::string problem(const GgufBuilder& file) {
  const Status status = failure(file.build());
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  return status.message();
}

std::string header(uint64_t tensors, uint64_t entries) {
  return "GGUF" +
      ByteWriter().number<uint32_t>(3).number(tensors).number(entries).bytes();
}

TEST(Gguf, ReadsAValidFile) {
  const std::string bytes = tiny_llama(GgmlType::kQ4_1, 32).build();
  const auto file = GgufFile::parse(as_bytes(bytes), "m.gguf");
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ(*file->get<std::string_view>("general.architecture"), "llama");
  EXPECT_EQ(*file->get<uint64_t>("llama.embedding_length"), 32u);
  EXPECT_EQ(*file->get<float>("llama.attention.layer_norm_rms_epsilon"), 1e-5f);
  EXPECT_EQ(
      *file->get_list<std::string_view>("tokenizer.ggml.merges"),
      std::vector<std::string_view>{"a b"});
  EXPECT_EQ(
      *file->get_list<int32_t>("tokenizer.ggml.token_type"),
      (std::vector<int32_t>{3, 1, 1, 1, 1}));
  const GgufTensor* tensor = file->find_tensor("blk.0.attn_k.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{16, 32}));
  EXPECT_EQ(tensor->rows(), 16);
  EXPECT_EQ(tensor->bytes.size(), 16u * 20);
  EXPECT_EQ(file->find_tensor("none"), nullptr);
}

TEST(Gguf, EveryIntegerTypeReads) {
  GgufBuilder builder;
  const auto raw = [](GgufValueType type) {
    return ByteWriter().number(static_cast<uint32_t>(type));
  };
  builder.set_raw("u8", raw(GgufValueType::kU8).number<uint8_t>(200).bytes());
  builder.set_raw("i8", raw(GgufValueType::kI8).number<int8_t>(-2).bytes());
  builder.set_raw("i16", raw(GgufValueType::kI16).number<int16_t>(300).bytes());
  builder.set_raw("u64", raw(GgufValueType::kU64).number(UINT64_MAX).bytes());
  const std::string bytes = builder.build();
  const auto file = GgufFile::parse(as_bytes(bytes), "m.gguf");
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ(*file->get<uint64_t>("u8"), 200u);
  EXPECT_EQ(*file->get<uint64_t>("i16"), 300u);
  EXPECT_EQ(*file->get<uint64_t>("u64"), UINT64_MAX);
  EXPECT_FALSE(file->get<uint64_t>("i8").is_ok()); // negative
}

TEST(Gguf, MissingKeyAndWrongTypeNameTheKey) {
  const std::string bytes = tiny_llama(GgmlType::kF32, 32).build();
  const auto file = GgufFile::parse(as_bytes(bytes), "m.gguf");
  EXPECT_THAT(
      file->get<uint64_t>("x.y").status().message(),
      HasSubstr("'x.y' is missing"));
  EXPECT_FALSE(file->find<uint64_t>("x.y")->has_value());
  EXPECT_THAT(
      file->get<uint64_t>("general.architecture").status().message(),
      HasSubstr("wrong type"));
  EXPECT_FALSE(file->get_list<float>("tokenizer.ggml.tokens").is_ok());
}

TEST(Gguf, NotAGgufFile) {
  EXPECT_THAT(failure("").message(), HasSubstr("not a GGUF file"));
  EXPECT_THAT(failure("GGML....").message(), HasSubstr("not a GGUF file"));
}

TEST(Gguf, OtherVersionsAreNamed) {
  const auto with_version = [](uint32_t version) {
    const Status status = failure(
        "GGUF" +
        ByteWriter()
            .number(version)
            .number<uint64_t>(0)
            .number<uint64_t>(0)
            .bytes());
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    return status.message();
  };
  EXPECT_THAT(with_version(1), HasSubstr("version 1"));
  EXPECT_THAT(with_version(4), HasSubstr("version 4"));
  EXPECT_THAT(with_version(0x03000000), HasSubstr("big-endian"));
}

TEST(Gguf, TruncatedAtEveryByte) {
  const std::string file = tiny_llama(GgmlType::kQ4_0, 32).build();
  ASSERT_TRUE(GgufFile::parse(as_bytes(file), "m.gguf").is_ok());
  const size_t last = file.size() - 20; // the padding may go
  for (size_t n = 0; n < last; n += n < 2048 ? 1 : 97) {
    EXPECT_FALSE(GgufFile::parse(as_bytes(file).first(n), "m.gguf").is_ok());
  }
}

TEST(Gguf, CountsThatCannotBe) {
  const std::string room(256, '\0');
  for (const uint64_t count : {uint64_t{1000}, uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_THAT(
        failure(header(count, 0) + room).message(), HasSubstr("more than fit"));
    EXPECT_THAT(
        failure(header(0, count) + room).message(), HasSubstr("more than fit"));
  }
}

TEST(Gguf, StringLongerThanTheFile) {
  for (const uint64_t length : {uint64_t{1} << 40, UINT64_MAX}) {
    const std::string rest = ByteWriter().number(length).bytes() + "key......";
    EXPECT_THAT(failure(header(0, 1) + rest).message(), HasSubstr("cut short"));
  }
}

TEST(Gguf, ArrayLongerThanTheFile) {
  for (const auto type :
       {GgufValueType::kString, GgufValueType::kU8, GgufValueType::kF64}) {
    for (const uint64_t count :
         {uint64_t{100000}, uint64_t{1} << 61, UINT64_MAX}) {
      GgufBuilder builder;
      builder.set_raw(
          "a",
          ByteWriter()
              .number(static_cast<uint32_t>(GgufValueType::kArray))
              .number(static_cast<uint32_t>(type))
              .number(count)
              .bytes());
      EXPECT_THAT(problem(builder), HasSubstr("more than fit"));
    }
  }
}

TEST(Gguf, NestedArrayIsRefused) {
  GgufBuilder builder;
  ByteWriter nested;
  for (int i = 0; i < 10000; ++i) {
    nested.number(static_cast<uint32_t>(GgufValueType::kArray))
        .number(static_cast<uint32_t>(GgufValueType::kArray))
        .number<uint64_t>(1);
  }
  builder.set_raw("a", nested.bytes());
  EXPECT_THAT(problem(builder), HasSubstr("nested arrays"));
}

TEST(Gguf, UnknownValueTypeIsRefused) {
  GgufBuilder builder;
  builder.set_raw(
      "a", ByteWriter().number<uint32_t>(13).number<uint64_t>(0).bytes());
  EXPECT_THAT(problem(builder), HasSubstr("unknown type 13"));
}

TEST(Gguf, DuplicateKeyAndTensor) {
  const std::string entry =
      ByteWriter()
          .text("k")
          .number(static_cast<uint32_t>(GgufValueType::kBool))
          .number<uint8_t>(1)
          .bytes();
  EXPECT_THAT(
      failure(header(0, 2) + entry + entry).message(), HasSubstr("'k' twice"));
  GgufBuilder builder;
  builder.add_tensor("t", {32}, GgmlType::kF32);
  builder.add_tensor("t", {32}, GgmlType::kF32);
  EXPECT_THAT(problem(builder), HasSubstr("'t' stands twice"));
}

// A file of one tensor.
std::string one_tensor(
    const std::vector<uint64_t>& dimensions,
    uint32_t type,
    uint64_t offset) {
  ByteWriter info;
  info.text("t").number(static_cast<uint32_t>(dimensions.size()));
  for (const uint64_t dim : dimensions) {
    info.number(dim);
  }
  info.number(type).number(offset);
  std::string file = header(1, 0) + info.bytes();
  file.resize((file.size() + 31) / 32 * 32 + 128);
  return file;
}

TEST(Gguf, TensorsThatCannotBe) {
  constexpr uint64_t kHuge = uint64_t{1} << 62;
  EXPECT_TRUE(
      GgufFile::parse(as_bytes(one_tensor({32}, 0, 0)), "m.gguf").is_ok());
  EXPECT_THAT(
      failure(one_tensor({}, 0, 0)).message(), HasSubstr("0 dimensions"));
  EXPECT_THAT(
      failure(one_tensor({1, 1, 1, 1, 1}, 0, 0)).message(),
      HasSubstr("5 dimensions"));
  for (const auto& dimensions : std::vector<std::vector<uint64_t>>{
           {0}, {UINT64_MAX}, {kHuge, 4}, {uint64_t{1} << 32, 1u << 31, 2}}) {
    EXPECT_THAT(
        failure(one_tensor(dimensions, 0, 0)).message(),
        HasSubstr("without a size"));
  }
  EXPECT_THAT(
      failure(one_tensor({kHuge}, 0, 0)).message(),
      HasSubstr("without a size")); // elements fit, bytes do not
  EXPECT_THAT(
      failure(one_tensor({33}, 0, 0)).message(), HasSubstr("past the end"));
  EXPECT_THAT(
      failure(one_tensor({1}, 0, UINT64_MAX - 31)).message(),
      HasSubstr("past the end"));
  EXPECT_THAT(
      failure(one_tensor({1}, 0, 4)).message(), HasSubstr("not aligned"));
  EXPECT_THAT(
      failure(one_tensor({48}, 2, 0)).message(), HasSubstr("whole blocks"));
}

TEST(Gguf, UnsupportedTensorTypeIsNamed) {
  const Status status = failure(one_tensor({256}, 23, 0));
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("'t' is IQ4_XS"));
  EXPECT_THAT(status.message(), HasSubstr("Q4_K"));
  EXPECT_THAT(
      failure(one_tensor({256}, 4000, 0)).message(), HasSubstr("type 4000"));
}

TEST(Gguf, BadAlignment) {
  for (const uint32_t alignment : {0u, 3u, 48u, 1u << 30}) {
    GgufBuilder builder;
    builder.set("general.alignment", alignment);
    EXPECT_THAT(problem(builder), HasSubstr("alignment of"));
  }
}

TEST(Gguf, OverlappingTensors) {
  ByteWriter infos;
  for (const char* name : {"a", "b"}) {
    infos.text(name)
        .number<uint32_t>(1)
        .number<uint64_t>(16)
        .number<uint32_t>(0)
        .number<uint64_t>(*name == 'a' ? 0 : 32);
  }
  std::string file = header(2, 0) + infos.bytes();
  file.resize((file.size() + 31) / 32 * 32 + 128);
  EXPECT_THAT(failure(file).message(), HasSubstr("'b' overlaps 'a'"));
}

} // namespace
} // namespace ingle

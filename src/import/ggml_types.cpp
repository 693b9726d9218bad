#include "import/ggml_types.h"

#include <array>
#include <utility>

namespace ingle {
namespace {

constexpr std::array<GgmlTypeInfo, 13> kTypes = {{
    {GgmlType::kF32, "F32", 1, 4},
    {GgmlType::kF16, "F16", 1, 2},
    {GgmlType::kBF16, "BF16", 1, 2},
    {GgmlType::kQ4_0, "Q4_0", 32, 18},
    {GgmlType::kQ4_1, "Q4_1", 32, 20},
    {GgmlType::kQ5_0, "Q5_0", 32, 22},
    {GgmlType::kQ5_1, "Q5_1", 32, 24},
    {GgmlType::kQ8_0, "Q8_0", 32, 34},
    {GgmlType::kQ2_K, "Q2_K", 256, 84},
    {GgmlType::kQ3_K, "Q3_K", 256, 110},
    {GgmlType::kQ4_K, "Q4_K", 256, 144},
    {GgmlType::kQ5_K, "Q5_K", 256, 176},
    {GgmlType::kQ6_K, "Q6_K", 256, 210},
}};

// Named in messages only.
constexpr std::array<std::pair<uint32_t, std::string_view>, 19> kOtherNames = {{
    {9, "Q8_1"},     {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"},  {20, "IQ4_NL"},  {21, "IQ3_S"},
    {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},     {27, "I64"},    {28, "F64"},     {29, "IQ1_M"},
    {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"},
}};

} // namespace

const GgmlTypeInfo& ggml_type_info(GgmlType type) {
  size_t i = 0;
  while (kTypes[i].type != type) {
    ++i;
  }
  return kTypes[i];
}

std::optional<GgmlType> parse_ggml_type(uint32_t number) {
  for (const GgmlTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == number) {
      return info.type;
    }
  }
  return std::nullopt;
}

std::string ggml_type_name(uint32_t number) {
  if (const auto type = parse_ggml_type(number)) {
    return std::string(ggml_type_info(*type).name);
  }
  for (const auto& [other, name] : kOtherNames) {
    if (other == number) {
      return std::string(name);
    }
  }
  return "type " + std::to_string(number);
}

std::string supported_ggml_types() {
  std::string names;
  for (const GgmlTypeInfo& info : kTypes) {
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  return names;
}

} // namespace ingle

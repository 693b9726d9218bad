#include "import/model_plan.h"

#include <array>
#include <charconv>

#include "weights/tensor.h"

namespace ingle {
namespace {

struct Family {
  std::string_view architecture; // general.architecture
  Result<ModelPlan> (*plan)(const GgufFile&);
};

constexpr std::array<Family, 2> kFamilies = {
    {{"gemma3", plan_gemma3}, {"llama", plan_llama}}};

} // namespace

Result<ModelPlan> plan_model(const GgufFile& file) {
  INGLE_ASSIGN_OR_RETURN(
      const auto architecture,
      file.get<std::string_view>("general.architecture"));
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) {
      return family.plan(file);
    }
    known += (known.empty() ? "" : ", ") + std::string(family.architecture);
  }
  return Status::unsupported(
      file.origin() + ": architecture " + quote_name(architecture) +
      " is not supported; ingle imports " + known);
}

int64_t source_row(const TensorPlan& plan, int64_t row) {
  if (plan.interleaved_heads == 0) {
    return row;
  }
  const int64_t head_rows = plan.source->rows() / plan.interleaved_heads;
  const int64_t in_head = row % head_rows;
  const int64_t half = head_rows / 2;
  return row - in_head + in_head % half * 2 + in_head / half;
}

double shortest_decimal(float value) {
  std::array<char, 64> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double parsed = value;
  std::from_chars(text.data(), end, parsed);
  return parsed;
}

} // namespace ingle

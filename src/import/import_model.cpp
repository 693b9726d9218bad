#include "import/import_model.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "import/gguf_reader.h"
#include "import/model_folder.h"
#include "import/model_plan.h"
#include "import/tokenizer_rebuild.h"
#include "import/weights_import.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using nlohmann::ordered_json;

std::string pretty(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
      "\n";
}

// All files but the weights.
std::vector<TextFile> text_files(
    ordered_json config,
    const ordered_json& quantization,
    RebuiltTokenizer tokenizer) {
  ordered_json generation = ordered_json::object();
  if (tokenizer.bos) {
    config["bos_token_id"] = generation["bos_token_id"] = *tokenizer.bos;
  }
  if (tokenizer.eos.size() == 1) {
    config["eos_token_id"] = generation["eos_token_id"] = tokenizer.eos[0];
  } else if (!tokenizer.eos.empty()) {
    config["eos_token_id"] = generation["eos_token_id"] = tokenizer.eos;
  }
  if (!quantization.is_null()) {
    config["quantization"] = quantization;
    config["quantization_config"] = quantization;
  }
  std::vector<TextFile> files = {
      {"config.json", pretty(config)},
      {"generation_config.json", pretty(generation)},
      {"tokenizer.json", std::move(tokenizer.tokenizer_json)},
      {"tokenizer_config.json", std::move(tokenizer.tokenizer_config_json)}};
  if (!tokenizer.chat_template.empty()) {
    files.push_back(
        {"chat_template.jinja", std::move(tokenizer.chat_template)});
  }
  return files;
}

// The tokenizer and the template as a server loads them. `origin` names the
// GGUF file.
Status check_text(
    const RebuiltTokenizer& tokenizer,
    const std::string& origin) {
  INGLE_RETURN_IF_ERROR(
      Tokenizer::from_json(tokenizer.tokenizer_json, origin).status());
  if (tokenizer.chat_template.empty()) {
    return Status::ok();
  }
  return ChatTemplate::compile(
             tokenizer.chat_template,
             origin + ": its chat template",
             SystemClock())
      .status();
}

// A file of a model in parts has a share of the tensors only.
Status refuse_parts(const GgufFile& file) {
  INGLE_ASSIGN_OR_RETURN(const auto parts, file.find<uint64_t>("split.count"));
  return parts.value_or(1) <= 1
      ? Status::ok()
      : Status::unsupported(
            file.origin() + ": is one of " + std::to_string(*parts) +
            " parts of a model; merge the parts first with gguf-split --merge");
}

} // namespace

std::vector<ImportTotal> ImportReport::totals() const {
  std::vector<ImportTotal> totals;
  for (const ImportedTensor& tensor : tensors) {
    auto total = std::find_if(totals.begin(), totals.end(), [&](auto& known) {
      return known.gguf_type == tensor.gguf_type &&
          known.stored_as == tensor.stored_as;
    });
    if (total == totals.end()) {
      total = totals.insert(
          total, {tensor.gguf_type, tensor.stored_as, tensor.is_exact});
    }
    ++total->tensors;
    total->gguf_bytes += tensor.gguf_bytes;
    total->stored_bytes += tensor.stored_bytes;
  }
  return totals;
}

Result<ImportReport> import_gguf(
    FileSystem& fs,
    const std::string& gguf_path,
    const std::string& folder,
    const ImportProgress& progress) {
  INGLE_ASSIGN_OR_RETURN(const auto target, new_model_folder(fs, folder));
  INGLE_ASSIGN_OR_RETURN(const auto mapping, fs.map(gguf_path));
  INGLE_ASSIGN_OR_RETURN(
      const auto file, GgufFile::parse(mapping->bytes(), gguf_path));
  INGLE_RETURN_IF_ERROR(refuse_parts(file));
  INGLE_ASSIGN_OR_RETURN(const auto plan, plan_model(file));
  INGLE_ASSIGN_OR_RETURN(auto tokenizer, rebuild_tokenizer(file));
  INGLE_RETURN_IF_ERROR(check_text(tokenizer, gguf_path));
  const WeightsImport weights(plan);
  const std::vector<TextFile> files =
      text_files(plan.config, weights.quantization(), std::move(tokenizer));
  INGLE_RETURN_IF_ERROR(write_model_folder(
      fs, target, files, weights.total_bytes(), [&](const std::string& path) {
        return weights.write(fs, path, gguf_path, progress);
      }));
  ImportReport report;
  INGLE_ASSIGN_OR_RETURN(
      report.architecture, file.get<std::string_view>("general.architecture"));
  report.folder = target;
  report.tensors = weights.report();
  return report;
}

} // namespace ingle

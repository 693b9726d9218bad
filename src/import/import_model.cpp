#include "import/import_model.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

#include <nlohmann/json.hpp>

#include "import/gguf_reader.h"
#include "import/model_plan.h"
#include "import/tokenizer_rebuild.h"
#include "import/weights_import.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

using nlohmann::ordered_json;

// Beside the model folder: ".<name>.importing-<8 hexadecimal digits>".
constexpr size_t kSuffixDigits = 8;

std::string temporary_prefix(const std::string& folder) {
  return "." + base_name(folder) + ".importing-";
}

std::string temporary_folder(const std::string& folder) {
  std::array<char, kSuffixDigits + 1> suffix;
  std::snprintf(suffix.data(), suffix.size(), "%08x", std::random_device{}());
  return join_path(
      parent_path(folder), temporary_prefix(folder) + suffix.data());
}

// True iff an import to `folder` that crashed left `name` beside it.
bool is_leftover(const std::string& name, const std::string& folder) {
  const std::string prefix = temporary_prefix(folder);
  return name.size() == prefix.size() + kSuffixDigits &&
      name.starts_with(prefix) &&
      name.find_first_not_of("0123456789abcdef", prefix.size()) ==
      std::string::npos;
}

Status remove_leftovers(FileSystem& fs, const std::string& folder) {
  const std::string parent = parent_path(folder);
  INGLE_ASSIGN_OR_RETURN(const auto names, fs.list(parent));
  for (const std::string& name : names) {
    if (is_leftover(name, folder)) {
      INGLE_RETURN_IF_ERROR(fs.remove(join_path(parent, name)));
    }
  }
  return Status::ok();
}

Result<std::string> checked_folder(FileSystem& fs, std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') {
    folder.pop_back();
  }
  const std::string name = base_name(folder);
  if (name.empty() || name == "." || name == "..") {
    return Status::invalid_request(
        "'" + folder + "' does not name a new folder; choose another place");
  }
  const auto info = fs.stat(folder);
  if (info.status().code() == StatusCode::kNotFound) {
    return folder;
  }
  INGLE_RETURN_IF_ERROR(info.status());
  bool is_free = info->is_directory;
  if (is_free) {
    INGLE_ASSIGN_OR_RETURN(const auto names, fs.list(folder));
    is_free = names.empty();
  }
  if (!is_free) {
    return Status::invalid_request(
        folder +
        ": already exists and is not an empty folder; remove it or choose "
        "another place");
  }
  return folder;
}

std::string pretty(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
      "\n";
}

struct TextFile {
  std::string name;
  std::string content;
};

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

Status check_space(FileSystem& fs, const std::string& parent, uint64_t needed) {
  INGLE_ASSIGN_OR_RETURN(const auto space, fs.space(parent));
  if (space.available >= needed) {
    return Status::ok();
  }
  const auto kilobytes = [](uint64_t bytes) {
    return std::to_string(bytes / 1000) + " kB";
  };
  return Status::no_space(
      parent + ": the model needs " + kilobytes(needed) + ", but only " +
      kilobytes(space.available) + " are free");
}

// One import after everything was checked.
class FolderWriter {
 public:
  FolderWriter(
      FileSystem& fs,
      const std::string& folder,
      const WeightsImport& weights,
      const std::vector<TextFile>& files)
      : fs_(fs),
        folder_(folder),
        temporary_(temporary_folder(folder)),
        weights_(weights),
        files_(files) {}

  Status write(const std::string& origin, const ImportProgress& progress) {
    const std::string parent = parent_path(folder_);
    INGLE_RETURN_IF_ERROR(fs_.create_directory(parent));
    INGLE_RETURN_IF_ERROR(remove_leftovers(fs_, folder_));
    INGLE_RETURN_IF_ERROR(check_space(fs_, parent, bytes()));
    Status status = fill(origin, progress);
    if (status.is_ok()) {
      status = publish(parent);
    }
    if (!status.is_ok()) {
      // The first failure is the one to tell.
      static_cast<void>(fs_.remove(temporary_));
      return std::move(status).with_context("cannot write " + folder_);
    }
    return status;
  }

 private:
  uint64_t bytes() const {
    uint64_t sum = weights_.total_bytes();
    for (const TextFile& file : files_) {
      sum += file.content.size();
    }
    return sum;
  }

  Status fill(const std::string& origin, const ImportProgress& progress) {
    INGLE_RETURN_IF_ERROR(fs_.create_directory(temporary_));
    for (const TextFile& file : files_) {
      INGLE_RETURN_IF_ERROR(write_file(
          fs_, join_path(temporary_, file.name), as_bytes(file.content)));
    }
    INGLE_RETURN_IF_ERROR(weights_.write(
        fs_, join_path(temporary_, "model.safetensors"), origin, progress));
    return fs_.sync_directory(temporary_);
  }

  Status publish(const std::string& parent) {
    INGLE_RETURN_IF_ERROR(fs_.rename(temporary_, folder_));
    Status status = fs_.sync_directory(parent);
    if (!status.is_ok()) {
      // Whole, but a crash could undo it: an error leaves nothing.
      static_cast<void>(fs_.remove(folder_));
    }
    return status;
  }

  FileSystem& fs_;
  const std::string& folder_;
  const std::string temporary_;
  const WeightsImport& weights_;
  const std::vector<TextFile>& files_;
};

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
  INGLE_ASSIGN_OR_RETURN(const auto target, checked_folder(fs, folder));
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
  INGLE_RETURN_IF_ERROR(
      FolderWriter(fs, target, weights, files).write(gguf_path, progress));
  ImportReport report;
  INGLE_ASSIGN_OR_RETURN(
      report.architecture, file.get<std::string_view>("general.architecture"));
  report.folder = target;
  report.tensors = weights.report();
  return report;
}

} // namespace ingle

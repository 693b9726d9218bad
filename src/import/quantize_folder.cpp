#include "import/quantize_folder.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "import/model_folder.h"
#include "text/tokenizer.h"
#include "weights/safetensors_reader.h"
#include "weights/safetensors_writer.h"
#include "weights/strict_json.h"

namespace ingle {
namespace {

using Json = nlohmann::json;

// What is converted at a time: large enough for the disk, small for memory.
constexpr size_t kChunkBytes = 1 << 20;
constexpr AffineSpec kWide = {8, 64};
constexpr std::string_view kWeight = ".weight";

bool is_floating(TensorType type) {
  return type == TensorType::kF16 || type == TensorType::kBF16 ||
      type == TensorType::kF32;
}

// One tensor of the source, or a part of one.
struct Item {
  std::string name; // of a quantised one, without ".weight"
  const TensorView* source = nullptr;
  std::vector<int64_t> shape{};
  std::vector<ByteView> pieces{}; // of whole rows, one after the other
  TensorType type = TensorType::kF32; // that its values get
  std::optional<AffineSpec> spec{}; // none: stays plain
};

std::string describe(const Item& item) {
  const std::string type(to_string(item.type));
  return item.spec ? std::to_string(item.spec->bits) + " bits, groups of " +
          std::to_string(item.spec->group_size) + ", " + type + " scales"
                   : type;
}

// Extents as they are stored; a quantised one's are those of its codes.
std::vector<int64_t> stored_shape(const Item& item, int64_t last) {
  std::vector<int64_t> shape = item.shape;
  shape.back() = last;
  return shape;
}

std::vector<TensorSpec> specs_of(const Item& item) {
  if (!item.spec) {
    return {{item.name, item.type, item.shape}};
  }
  const int64_t columns = item.shape.back();
  const int64_t groups = columns / item.spec->group_size;
  return {
      {item.name + ".weight",
       TensorType::kU32,
       stored_shape(item, columns / 32 * item.spec->bits)},
      {item.name + ".scales", item.type, stored_shape(item, groups)},
      {item.name + ".biases", item.type, stored_shape(item, groups)}};
}

uint64_t stored_bytes(const Item& item) {
  uint64_t bytes = 0;
  for (const TensorSpec& spec : specs_of(item)) {
    // No product overflows: no form is larger than f32, which fits if what is
    // in the file does.
    bytes += tensor_bytes(spec.type, spec.shape).value_or(0);
  }
  return bytes;
}

class FolderQuantizer {
 public:
  FolderQuantizer(
      const WeightFolder& weights,
      const QuantizeOptions& options,
      std::optional<TensorType> type)
      : weights_(weights), options_(options), type_(type) {}

  Status plan() {
    for (const auto& [name, tensor] : weights_.tensors()) {
      if (is_dropped(name)) {
        continue;
      }
      if (plan_fused_experts(name, tensor)) {
        continue;
      }
      Item item{name, &tensor, tensor.shape, {tensor.bytes}, tensor.type};
      if (is_floating(tensor.type)) {
        item.type = stored_type(name, tensor);
        item.spec = spec_of(item);
      } else if (tensor.shape.size() > 1) {
        return Status::unsupported(
            tensor.file + ": tensor " + quote_name(name) + " is of type " +
            std::string(to_string(tensor.type)) +
            "; F16, BF16 and F32 can be quantised");
      }
      add(std::move(item));
    }
    // Wide elements first, so that every tensor is aligned: a quantised one's
    // bytes together are a multiple of 4.
    const auto rank = [](const Item& item) {
      return item.spec ? -4 : -static_cast<int>(element_size(item.type));
    };
    std::ranges::stable_sort(items_, {}, rank);
    return Status::ok();
  }

  uint64_t total_bytes() const {
    uint64_t total = 0;
    for (const Item& item : items_) {
      total += stored_bytes(item);
    }
    return total;
  }

  // The entry of config.json.
  Json quantization() const {
    const auto entry = [](const AffineSpec& spec) {
      return Json{
          {"bits", spec.bits},
          {"group_size", spec.group_size},
          {"mode", "affine"}};
    };
    Json quantization = entry(options_.spec);
    for (const Item& item : items_) {
      if (item.spec && item.spec != options_.spec) {
        quantization[item.name] = entry(*item.spec);
      }
    }
    return quantization;
  }

  std::vector<QuantizeTotal> totals() const {
    std::vector<QuantizeTotal> totals;
    for (const Item& item : items_) {
      const std::string type(to_string(item.source->type));
      const std::string form = describe(item);
      auto total = std::ranges::find_if(totals, [&](const auto& known) {
        return known.type == type && known.stored_as == form;
      });
      if (total == totals.end()) {
        total = totals.insert(total, {type, form});
      }
      ++total->tensors;
      for (const ByteView piece : item.pieces) {
        total->bytes += piece.size();
      }
      total->stored_bytes += stored_bytes(item);
    }
    return totals;
  }

  Status write(
      FileSystem& fs,
      const std::string& path,
      const ImportProgress& progress) const {
    std::vector<TensorSpec> specs;
    for (const Item& item : items_) {
      for (TensorSpec& spec : specs_of(item)) {
        specs.push_back(std::move(spec));
      }
    }
    INGLE_ASSIGN_OR_RETURN(
        auto writer, SafetensorsWriter::create(fs, path, std::move(specs)));
    const uint64_t total = total_bytes();
    uint64_t done = 0;
    for (const Item& item : items_) {
      INGLE_RETURN_IF_ERROR(write_item(item, *writer, [&](size_t bytes) {
        done += bytes;
        if (progress) {
          progress(done, total);
        }
      }));
      weights_.release(*item.source);
    }
    return writer->finish();
  }

 private:
  bool is_dropped(const std::string& name) const {
    return name.ends_with("rotary_emb.inv_freq") || // a table; older files
        options_.dropped.contains(name);
  }

  // That its values get. Logarithms of a recurrent layer's rates of decay keep
  // theirs.
  TensorType stored_type(const std::string& name, const TensorView& tensor)
      const {
    return name.ends_with("A_log") ? tensor.type : type_.value_or(tensor.type);
  }

  // Of one that still has its suffix.
  std::optional<AffineSpec> spec_of(const Item& item) const {
    if (!item.name.ends_with(kWeight) || item.source->bytes.empty()) {
      return std::nullopt;
    }
    const std::string_view module(
        item.name.data(), item.name.size() - kWeight.size());
    const bool is_stacked = item.shape.size() == 3 &&
        module.find("." + options_.stacked_experts + ".") != module.npos;
    if (item.shape.size() != 2 && !is_stacked) {
      return std::nullopt;
    }
    const int64_t columns = item.shape.back();
    if (columns % options_.spec.group_size != 0) {
      return std::nullopt;
    }
    const bool is_wide = std::ranges::any_of(
        options_.wide_modules,
        [&](const auto& end) { return module.ends_with(end); });
    const AffineSpec spec = is_wide ? kWide : options_.spec;
    return columns % spec.group_size == 0 ? std::optional(spec) : std::nullopt;
  }

  void add(Item item) {
    if (item.spec) {
      item.name.resize(item.name.size() - kWeight.size());
    }
    items_.push_back(std::move(item));
  }

  // True iff they are these: gates and what they multiply, one half of each
  // expert's rows each, or what comes after. Each of the three is a module of
  // its own then, quantised or plain whatever the others are.
  bool plan_fused_experts(const std::string& name, const TensorView& tensor) {
    constexpr std::string_view kIn = ".experts.gate_up_proj";
    constexpr std::string_view kOut = ".experts.down_proj";
    const bool is_in = name.ends_with(kIn);
    const int parts = is_in ? 2 : 1;
    if ((!is_in && !name.ends_with(kOut)) || tensor.shape.size() != 3 ||
        tensor.shape[1] % parts != 0 || !is_floating(tensor.type) ||
        tensor.bytes.empty()) {
      return false;
    }
    const int64_t experts = tensor.shape[0];
    const int64_t rows = tensor.shape[1] / parts;
    const std::string path =
        name.substr(0, name.size() - (is_in ? kIn : kOut).size()) + "." +
        options_.stacked_experts + ".";
    const size_t bytes =
        tensor.bytes.size() / static_cast<size_t>(experts * parts);
    for (int part = 0; part < parts; ++part) {
      const char* own =
          is_in ? (part == 0 ? "gate_proj" : "up_proj") : "down_proj";
      Item item{
          path + own + std::string(kWeight),
          &tensor,
          {experts, rows, tensor.shape[2]}};
      for (int64_t expert = 0; expert < experts; ++expert) {
        const auto at = static_cast<size_t>(expert * parts + part);
        item.pieces.push_back(tensor.bytes.subspan(at * bytes, bytes));
      }
      item.type = stored_type(item.name, tensor);
      item.spec = spec_of(item);
      add(std::move(item));
    }
    return true;
  }

  // Some whole rows each.
  static std::vector<ByteView> chunks_of(const Item& item) {
    const size_t element = element_size(item.source->type);
    const size_t row =
        item.spec ? element * static_cast<size_t>(item.shape.back()) : element;
    const size_t step = std::max<size_t>(1, kChunkBytes / row) * row;
    std::vector<ByteView> chunks;
    for (const ByteView piece : item.pieces) {
      for (size_t at = 0; at < piece.size(); at += step) {
        chunks.push_back(piece.subspan(at, std::min(step, piece.size() - at)));
      }
    }
    return chunks;
  }

  // A chunk at a time; `done` is told of what was written.
  Status write_item(
      const Item& item,
      SafetensorsWriter& writer,
      const std::function<void(size_t bytes)>& done) const {
    const TensorView& source = *item.source;
    const std::string codes = item.spec ? item.name + ".weight" : item.name;
    AffineBytes affine;
    std::vector<std::byte> converted;
    for (ByteView chunk : chunks_of(item)) {
      if (item.type != source.type) {
        convert_floats(source.type, chunk, item.type, converted);
        chunk = converted;
      }
      if (item.spec) {
        affine.codes.clear();
        if (!quantize(item.type, chunk, *item.spec, affine)) {
          return Status::corruption(
              source.file + ": tensor " +
              quote_name(item.name + std::string(kWeight)) +
              " has a value that is not finite");
        }
        chunk = affine.codes;
      }
      INGLE_RETURN_IF_ERROR(writer.append(codes, chunk));
      done(chunk.size());
    }
    if (item.spec) {
      INGLE_RETURN_IF_ERROR(
          writer.append(item.name + ".scales", affine.scales));
      INGLE_RETURN_IF_ERROR(
          writer.append(item.name + ".biases", affine.biases));
      done(affine.scales.size() + affine.biases.size());
    }
    return Status::ok();
  }

  const WeightFolder& weights_;
  const QuantizeOptions& options_;
  std::optional<TensorType> type_;
  std::vector<Item> items_; // in the order of the file
};

// The config of a model of plain weights.
Result<Json> read_config(FileSystem& fs, const std::string& source) {
  const std::string path = join_path(source, "config.json");
  INGLE_ASSIGN_OR_RETURN(const std::string text, fs.read(path));
  INGLE_ASSIGN_OR_RETURN(Json config, parse_strict_json(text, path));
  if (!config.is_object()) {
    return Status::corruption(path + ": not a JSON object");
  }
  for (const char* key : {"quantization", "quantization_config"}) {
    const auto entry = config.find(key);
    if (entry != config.end() && !entry->is_null()) {
      return Status::unsupported(
          path + ": " + key +
          " is there: the weights are quantised already; take the model's "
          "unquantised form");
    }
  }
  return config;
}

// What weights are to be converted to first: newer configs of models that also
// see say it of the part that reads. As mlx-lm's convert has it, which looks
// nowhere else.
std::optional<TensorType> type_of(const Json& config) {
  Json type = config.value("torch_dtype", Json());
  if (const auto text = config.find("text_config");
      type.is_null() && text != config.end() && text->is_object()) {
    type = text->value("dtype", Json());
  }
  return type == "bfloat16" ? std::optional(TensorType::kBF16)
      : type == "float16"   ? std::optional(TensorType::kF16)
      : type == "float32"   ? std::optional(TensorType::kF32)
                            : std::nullopt;
}

// The source's files beside config and weights.
Result<std::vector<TextFile>> read_files(
    FileSystem& fs,
    const std::string& source) {
  std::vector<TextFile> files;
  for (const char* name :
       {"tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "chat_template.jinja",
        "chat_template.json",
        "generation_config.json",
        "kv_config.json"}) {
    const std::string path = join_path(source, name);
    auto content = fs.read(path);
    if (content.status().code() == StatusCode::kNotFound && !files.empty()) {
      continue; // the first has to be there
    }
    INGLE_RETURN_IF_ERROR(content.status());
    files.push_back({name, std::move(*content)});
  }
  INGLE_RETURN_IF_ERROR(
      Tokenizer::from_json(
          files.front().content, join_path(source, files.front().name))
          .status());
  return files;
}

} // namespace

Result<QuantizeReport> quantize_folder(
    FileSystem& fs,
    const std::string& source,
    const std::string& folder,
    const QuantizeOptions& options,
    const ImportProgress& progress) {
  INGLE_ASSIGN_OR_RETURN(const auto target, new_model_folder(fs, folder));
  INGLE_ASSIGN_OR_RETURN(Json config, read_config(fs, source));
  INGLE_ASSIGN_OR_RETURN(auto files, read_files(fs, source));
  INGLE_ASSIGN_OR_RETURN(const auto weights, WeightFolder::open(fs, source));
  FolderQuantizer quantizer(*weights, options, type_of(config));
  INGLE_RETURN_IF_ERROR(quantizer.plan());
  config["quantization"] = quantizer.quantization();
  config["quantization_config"] = config["quantization"];
  files.push_back({"config.json", config.dump(2) + "\n"});
  INGLE_RETURN_IF_ERROR(write_model_folder(
      fs, target, files, quantizer.total_bytes(), [&](const std::string& path) {
        return quantizer.write(fs, path, progress);
      }));
  return QuantizeReport{target, quantizer.totals()};
}

} // namespace ingle

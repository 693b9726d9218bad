#include "model/lora.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/float16.h"
#include "model/lora_config.h"
#include "weights/safetensors_reader.h"

namespace ingle {
namespace {

constexpr int64_t kMaxRank = 1 << 14;

// A name that is the same in all files of a model: some have the text's part
// below a name of its own, and PEFT has all below one.
std::string common_name(std::string_view module) {
  constexpr std::string_view kPeft = "base_model.model.";
  constexpr std::string_view kText = "language_model.";
  if (module.starts_with(kPeft)) {
    module.remove_prefix(kPeft.size());
  }
  std::string name(module);
  if (const size_t at = name.find(kText); at != std::string::npos) {
    name.erase(at, kText.size());
  }
  return name;
}

// What stands after the last dot.
std::string_view base_name_of(std::string_view module) {
  return module.substr(module.rfind('.') + 1);
}

// "MODULE.lora_a.weight" and the like.
struct FactorName {
  std::string module;
  bool is_a = false;
  bool is_peft = false; // as spelled
};

std::optional<FactorName> parse_factor_name(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (name.ends_with(kWeight)) {
    name.remove_suffix(kWeight.size());
  }
  for (const std::string_view suffix :
       {".lora_a", ".lora_b", ".lora_A", ".lora_B"}) {
    if (name.ends_with(suffix)) {
      const char letter = suffix.back();
      name.remove_suffix(suffix.size());
      return FactorName{
          std::string(name),
          letter == 'a' || letter == 'A',
          letter == 'A' || letter == 'B'};
    }
  }
  return std::nullopt;
}

// A and B of a module, as the file has them.
struct Factors {
  std::string module; // the file's name of it
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
  bool is_peft = false; // as spelled

  // Of what fits.
  bool has_peft_layout = false;
  int rank = 0;
};

std::string describe(const TensorView& tensor) {
  std::string text = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  }
  return text + "]";
}

// Requires: a type of floats.
float value_at(const TensorView& tensor, size_t i) {
  const std::byte* at = tensor.bytes.data() + i * element_size(tensor.type);
  if (tensor.type == TensorType::kF32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  return tensor.type == TensorType::kF16 ? load_f16(at)
                                         : bf16_to_f32(load_u16(at));
}

bool is_floating(TensorType type) {
  return type == TensorType::kF16 || type == TensorType::kBF16 ||
      type == TensorType::kF32;
}

// Where each starts on a line of the processor's caches.
size_t padded(size_t floats) {
  return (floats + 15) / 16 * 16;
}

size_t product(int a, int b) {
  return static_cast<size_t>(a) * static_cast<size_t>(b);
}

} // namespace

// An adapter's file on its way into memory.
class AdapterLoad {
 public:
  AdapterLoad(std::string path, const AdapterLayout& layout)
      : path_(std::move(path)), layout_(layout) {
    for (const std::string& module : layout.modules) {
      modules_.insert(common_name(module));
    }
    for (size_t i = 0; i < layout.linears.size(); ++i) {
      linears_[common_name(layout.linears[i].module)].push_back(i);
    }
  }

  // Sorts out what the file has.
  Status find(const std::map<std::string, TensorView>& tensors);
  // Requires: find() went well. Gives all of it.
  Result<std::shared_ptr<const Adapter>> make(const LoraConfig& config) const;

 private:
  Status fail(const std::string& tensor, const std::string& what) const {
    return Status::corruption(
        path_ + ": tensor " + quote_name(tensor) + " " + what);
  }
  Status place(const FactorName& name, const TensorView& tensor);
  Status check(const std::string& module, Factors& factors) const;
  Status refuse(const std::string& module, const std::string& why) const {
    return Status::unsupported(
        path_ + ": adapts " + quote_name(module) + ", " + why);
  }
  Status copy_a(const Factors& factors, int in, float* to) const;
  Status copy_b(const Factors& factors, const LinearPlace& place, float* to)
      const;
  const LinearPlace& place_of(const std::string& module) const {
    return layout_.linears[linears_.at(module).front()];
  }
  size_t floats() const;

  std::string path_;
  const AdapterLayout& layout_;
  std::set<std::string> modules_; // of the model, by common name
  std::map<std::string, std::vector<size_t>> linears_; // by common name
  std::map<std::string, Factors> found_; // by common name
  std::set<std::string> skipped_;
};

Status AdapterLoad::place(const FactorName& name, const TensorView& tensor) {
  const std::string module = common_name(name.module);
  if (module.find(".experts.") != std::string::npos ||
      module.find(".switch_mlp.") != std::string::npos) {
    return refuse(name.module, "and adapters of experts are not supported");
  }
  if (base_name_of(module) == "lm_head") { // also one that is the embedding
    return refuse(name.module, "and adapters of heads are not supported");
  }
  const auto linears = linears_.find(module);
  if (linears == linears_.end()) {
    if (modules_.count(module) != 0) {
      return refuse(
          name.module, "and adapters of this kind of module are not supported");
    }
    skipped_.insert(module);
    return Status::ok();
  }
  if (!layout_.linears[linears->second.front()].takes_adapters) {
    return refuse(
        name.module, "and adapters of this kind of module are not supported");
  }
  Factors& factors = found_[module];
  const TensorView*& own = name.is_a ? factors.a : factors.b;
  if (own != nullptr) {
    return fail(name.module, "is there twice, under different names");
  }
  own = &tensor;
  factors.module = name.module;
  factors.is_peft = name.is_peft;
  return Status::ok();
}

Status AdapterLoad::check(const std::string& module, Factors& factors) const {
  if (factors.a == nullptr || factors.b == nullptr) {
    return fail(
        factors.module + (factors.a == nullptr ? ".lora_a" : ".lora_b"),
        "is missing, and the other half of it is there");
  }
  for (const TensorView* each : {factors.a, factors.b}) {
    if (!is_floating(each->type)) {
      return fail(
          factors.module,
          "has the type " + std::string(to_string(each->type)) +
              " where F16, BF16 or F32 is expected");
    }
  }
  const LinearPlace& own = place_of(module);
  const auto& a = factors.a->shape;
  const auto& b = factors.b->shape;
  const bool are_matrices = a.size() == 2 && b.size() == 2;
  const bool fits_mlx =
      are_matrices && a[0] == own.in && b[1] == own.module_out && a[1] == b[0];
  const bool fits_peft =
      are_matrices && a[1] == own.in && b[0] == own.module_out && a[0] == b[1];
  factors.has_peft_layout = fits_peft && (factors.is_peft || !fits_mlx);
  const int64_t rank =
      fits_mlx || fits_peft ? a[factors.has_peft_layout ? 0 : 1] : 0;
  if (rank < 1 || rank > kMaxRank) {
    return fail(
        factors.module,
        "has the shapes " + describe(*factors.a) + " and " +
            describe(*factors.b) + " where the model, of " +
            std::to_string(own.in) + " inputs and " +
            std::to_string(own.module_out) + " outputs, asks for [" +
            std::to_string(own.in) + ", rank] and [rank, " +
            std::to_string(own.module_out) + "], or both transposed");
  }
  factors.rank = static_cast<int>(rank);
  return Status::ok();
}

Status AdapterLoad::find(const std::map<std::string, TensorView>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const auto factor = parse_factor_name(name);
    if (!factor) {
      return Status::unsupported(
          path_ + ": tensor " + quote_name(name) +
          " is no lora_a or lora_b: what else adapters may hold (DoRA's "
          "magnitudes, embeddings, biases, whole weights) is not supported");
    }
    INGLE_RETURN_IF_ERROR(place(*factor, tensor));
  }
  if (found_.empty()) {
    return Status::corruption(
        path_ + ": none of its " + std::to_string(skipped_.size()) +
        " modules is one of this model" +
        (skipped_.empty()
             ? ""
             : ", the first of them " + quote_name(*skipped_.begin()) +
                 ": it was made for another one"));
  }
  for (auto& [module, factors] : found_) {
    INGLE_RETURN_IF_ERROR(check(module, factors));
  }
  return Status::ok();
}

// Of all matrices, each padded.
size_t AdapterLoad::floats() const {
  size_t sum = 0;
  for (const auto& [module, factors] : found_) {
    sum += padded(product(factors.rank, place_of(module).in));
    for (const size_t i : linears_.at(module)) {
      size_t out = 0;
      for (const RowRange& rows : layout_.linears[i].rows) {
        out += static_cast<size_t>(rows.count);
      }
      sum += padded(static_cast<size_t>(factors.rank) * out);
    }
  }
  return sum;
}

// To [rank][in].
Status AdapterLoad::copy_a(const Factors& factors, int in, float* to) const {
  const auto rank = static_cast<size_t>(factors.rank);
  const auto columns = static_cast<size_t>(in);
  for (size_t r = 0; r < rank; ++r) {
    for (size_t i = 0; i < columns; ++i) {
      const size_t at =
          factors.has_peft_layout ? r * columns + i : i * rank + r;
      const float value = value_at(*factors.a, at);
      if (!std::isfinite(value)) {
        return fail(factors.module, "has a value that is no number");
      }
      *to++ = value;
    }
  }
  return Status::ok();
}

// The linear's rows of the module's outputs, to [rank][out].
Status AdapterLoad::copy_b(
    const Factors& factors,
    const LinearPlace& place,
    float* to) const {
  const auto rank = static_cast<size_t>(factors.rank);
  const auto all = static_cast<size_t>(place.module_out);
  for (size_t r = 0; r < rank; ++r) {
    for (const RowRange& rows : place.rows) {
      for (int row = rows.begin; row < rows.begin + rows.count; ++row) {
        const auto out = static_cast<size_t>(row);
        const size_t at =
            factors.has_peft_layout ? out * rank + r : r * all + out;
        const float value = value_at(*factors.b, at);
        if (!std::isfinite(value)) {
          return fail(factors.module, "has a value that is no number");
        }
        *to++ = value;
      }
    }
  }
  return Status::ok();
}

namespace {

// Of what makes an adapter what it is.
class ContentHash {
 public:
  ContentHash() {
    XXH3_128bits_reset(&state_);
  }
  void add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(&state_, bytes.data(), bytes.size());
  }
  void add(const std::string& text) {
    add(text.size());
    add(std::as_bytes(std::span(text)));
  }
  void add(uint64_t number) {
    add(std::as_bytes(std::span(&number, 1)));
  }
  std::string digest() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    return {
        reinterpret_cast<const char*>(canonical.digest),
        sizeof canonical.digest};
  }

 private:
  XXH3_state_t state_{};
};

} // namespace

Result<std::shared_ptr<const Adapter>> AdapterLoad::make(
    const LoraConfig& config) const {
  const std::shared_ptr<Adapter> adapter(new Adapter);
  adapter->values_ = PageBuffer(sizeof(float) * floats());
  adapter->parts_.resize(layout_.linears.size());
  auto* to = reinterpret_cast<float*>(adapter->values_.data());
  ContentHash hash;
  for (const auto& [module, factors] : found_) {
    const auto& [rank, in] = std::pair(factors.rank, place_of(module).in);
    INGLE_ASSIGN_OR_RETURN(const float scale, config.scale_of(module, rank));
    hash.add(module);
    hash.add(static_cast<uint64_t>(rank));
    hash.add(std::bit_cast<uint32_t>(scale));
    const auto take = [&](size_t count) {
      hash.add(count);
      hash.add(std::as_bytes(std::span(to, count)));
      const float* taken = to;
      to += padded(count);
      return taken;
    };
    INGLE_RETURN_IF_ERROR(copy_a(factors, in, to));
    const float* a = take(product(rank, in));
    for (const size_t i : linears_.at(module)) {
      const LinearPlace& place = layout_.linears[i];
      int out = 0;
      for (const RowRange& rows : place.rows) {
        out += rows.count;
      }
      INGLE_RETURN_IF_ERROR(copy_b(factors, place, to));
      adapter->parts_[i] = LowRank{a, take(product(rank, out)), rank, scale};
    }
    adapter->info_.rank = std::max(adapter->info_.rank, rank);
  }
  adapter->hash_ = hash.digest();
  adapter->info_.modules = static_cast<int>(found_.size());
  adapter->info_.skipped = static_cast<int>(skipped_.size());
  adapter->info_.scale = config.scale();
  adapter->info_.bytes = adapter->values_.bytes();
  return std::shared_ptr<const Adapter>(adapter);
}

Result<std::shared_ptr<const Adapter>> Adapter::load(
    FileSystem& fs,
    const std::string& folder,
    const AdapterLayout& layout) {
  INGLE_ASSIGN_OR_RETURN(const auto config, LoraConfig::read(fs, folder));
  std::string path = join_path(folder, "adapters.safetensors");
  auto file = fs.map(path);
  if (file.status().code() == StatusCode::kNotFound) {
    path = join_path(folder, "adapter_model.safetensors");
    file = fs.map(path);
  }
  if (file.status().code() == StatusCode::kNotFound) {
    return Status::not_found(
        folder +
        ": has neither adapters.safetensors nor adapter_model.safetensors, so "
        "it is no adapter");
  }
  INGLE_RETURN_IF_ERROR(file.status());
  INGLE_ASSIGN_OR_RETURN(
      const auto tensors, parse_safetensors((*file)->bytes(), path));
  AdapterLoad load(path, layout);
  INGLE_RETURN_IF_ERROR(load.find(tensors));
  return load.make(config);
}

std::shared_ptr<const AdapterSet> AdapterSet::of(
    std::vector<std::shared_ptr<const Adapter>> adapters) {
  const std::shared_ptr<AdapterSet> set(new AdapterSet);
  for (const auto& adapter : adapters) {
    bool adds = false;
    for (size_t i = 0; i < adapter->linears(); ++i) {
      const LowRank* part = adapter->find(i);
      if (part != nullptr && part->scale != 0) {
        set->parts_.resize(std::max(set->parts_.size(), i + 1));
        set->parts_[i].push_back(*part);
        adds = true;
      }
    }
    if (adds) {
      set->key_ += adapter->hash();
    }
  }
  if (set->key_.empty()) {
    return nullptr;
  }
  set->adapters_ = std::move(adapters);
  return set;
}

} // namespace ingle

#include "engine/adapter_registry.h"

#include <algorithm>
#include <cctype>

#include "model/lora_config.h"
#include "weights/tensor.h"

namespace ingle {
namespace {

constexpr size_t kMaxIdBytes = 128;
constexpr size_t kMaxChosen = 16; // adapters of one request
constexpr std::string_view kNone = "none";
constexpr std::string_view kSeparators = "+,";

Status invalid(const char* field, const std::string& what) {
  return Status::invalid_request(std::string(field) + ": " + what)
      .with_where(field);
}

bool is_plain(char c) {
  return c > ' ' && c < 0x7f && c != '/' && c != '%' &&
      kSeparators.find(c) == std::string_view::npos;
}

Status check_id(const std::string& id) {
  if (!id.empty() && id.size() <= kMaxIdBytes && id != kNone &&
      std::ranges::all_of(id, is_plain)) {
    return Status::ok();
  }
  return invalid(
      "id",
      "expected 1 to 128 printable characters without spaces, '+', ',', '/' "
      "and '%', and not \"none\", got " +
          quote_name(id));
}

// The stores' owner decides what is below them, and nobody else: no step of a
// path that a client sends leads up.
bool leads_up(std::string_view path) {
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view step = path.substr(0, end);
    if (step == ".." || step == ".") {
      return true;
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

// What a failure to read an adapter is to who asked for it.
Status blame_path(const Status& status) {
  if (status.code() == StatusCode::kIo) {
    return status;
  }
  return invalid("path", status.message());
}

MountedAdapter describe(
    const std::string& id,
    const std::string& path,
    const AdapterInfo& info) {
  return {
      id, path, info.modules, info.skipped, info.rank, info.scale, info.bytes};
}

// What stands after the last slash, in small letters: hubs name a model with
// its owner, folders without.
std::string bare_name(std::string_view model) {
  std::string name = base_name(model);
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return name;
}

} // namespace

Result<std::shared_ptr<AdapterRegistry>> AdapterRegistry::make(
    FileSystem& fs,
    AdapterOptions options,
    std::string model_name,
    std::shared_ptr<const AdapterLayout> layout) {
  const std::shared_ptr<AdapterRegistry> registry(new AdapterRegistry(
      fs, std::move(options), std::move(model_name), std::move(layout)));
  for (const auto& [id, path] : registry->options_.mounted) {
    INGLE_RETURN_IF_ERROR(registry->mount_folder(id, path).status());
  }
  return registry;
}

Result<std::string> AdapterRegistry::find_in_stores(
    const std::string& path) const {
  for (const std::string& store : options_.stores) {
    const std::string inside = join_path(store, "");
    const std::string folder =
        path.starts_with('/') ? path : join_path(store, path);
    if (folder.size() > inside.size() && folder.starts_with(inside) &&
        path.find('\0') == std::string::npos &&
        !leads_up(std::string_view(folder).substr(inside.size())) &&
        fs_.exists(folder)) {
      return folder;
    }
  }
  std::string stores;
  for (const std::string& store : options_.stores) {
    stores += (stores.empty() ? "" : ", ") + store;
  }
  return invalid(
      "path",
      quote_name(path) + " is no adapter's folder below " +
          (stores.empty() ? "a store, of which there is none" : stores) +
          ": see /v1/adapters/available");
}

Result<MountedAdapter> AdapterRegistry::mount(
    const std::string& id,
    const std::string& path) {
  INGLE_RETURN_IF_ERROR(check_id(id));
  INGLE_ASSIGN_OR_RETURN(const std::string folder, find_in_stores(path));
  return mount_folder(id, folder);
}

Result<MountedAdapter> AdapterRegistry::mount_folder(
    const std::string& id,
    const std::string& folder) {
  INGLE_RETURN_IF_ERROR(check_id(id));
  auto adapter = Adapter::load(fs_, folder, *layout_);
  if (!adapter.is_ok()) {
    return blame_path(adapter.status());
  }
  MutexLock lock(mutex_);
  Entry& entry = entries_[id];
  const bool is_same =
      entry.adapter != nullptr && entry.adapter->hash() == (*adapter)->hash();
  if (!is_same) {
    entry = {*adapter, folder};
  }
  return describe(id, entry.path, entry.adapter->info());
}

Result<MountedAdapter> AdapterRegistry::unmount(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return Status::not_found(
               "no adapter " + quote_name(id) +
               " is mounted: see /v1/adapters for those that are")
        .with_reason("adapter_not_found");
  }
  MountedAdapter removed =
      describe(id, found->second.path, found->second.adapter->info());
  entries_.erase(found);
  return removed;
}

std::vector<MountedAdapter> AdapterRegistry::mounted() const {
  MutexLock lock(mutex_);
  std::vector<MountedAdapter> all;
  for (const auto& [id, entry] : entries_) {
    all.push_back(describe(id, entry.path, entry.adapter->info()));
  }
  return all;
}

std::vector<AvailableAdapter> AdapterRegistry::available() const {
  std::vector<AvailableAdapter> all;
  for (const std::string& store : options_.stores) {
    const auto names = fs_.list(store);
    if (!names.is_ok()) {
      continue; // it need not be there
    }
    for (const std::string& name : *names) {
      const std::string folder = join_path(store, name);
      const auto config = LoraConfig::read(fs_, folder);
      if (!config.is_ok()) {
        continue; // something else
      }
      const std::string& base = config->base_model();
      if (base.empty() || bare_name(base) == bare_name(model_name_)) {
        all.push_back({name, folder, config->rank(), config->scale(), base});
      }
    }
  }
  return all;
}

Result<std::shared_ptr<const AdapterSet>> AdapterRegistry::choose(
    const std::optional<std::string>& wanted) const {
  std::vector<std::shared_ptr<const Adapter>> chosen;
  MutexLock lock(mutex_);
  if (!wanted) {
    for (const auto& [id, path] : options_.mounted) {
      const auto found = entries_.find(id);
      if (found != entries_.end()) { // not unmounted since
        chosen.push_back(found->second.adapter);
      }
    }
    return AdapterSet::of(std::move(chosen));
  }
  if (*wanted == kNone) {
    return std::shared_ptr<const AdapterSet>();
  }
  for (size_t begin = 0; begin <= wanted->size();) {
    const size_t end =
        std::min(wanted->find_first_of(kSeparators, begin), wanted->size());
    const std::string id = wanted->substr(begin, end - begin);
    const auto found = entries_.find(id);
    if (found == entries_.end() || chosen.size() == kMaxChosen) {
      return invalid(
          "adapter",
          found == entries_.end()
              ? "no adapter " + quote_name(id) +
                  " is mounted: see /v1/adapters for those that are"
              : "expected at most " + std::to_string(kMaxChosen) + " adapters");
    }
    chosen.push_back(found->second.adapter);
    begin = end + 1;
  }
  return AdapterSet::of(std::move(chosen));
}

} // namespace ingle

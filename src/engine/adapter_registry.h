// Adapters by id: reads them for one model, and keeps them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/mutex.h"
#include "engine/adapters.h"
#include "model/lora.h"

namespace ingle {

// Which adapters a server has.
struct AdapterOptions {
  // Folders whose folders are adapters that requests may mount; they need not
  // be there.
  std::vector<std::string> stores;
  // Mounted at the start from any folder: id, path. Requests that say nothing
  // run with these, in this order.
  std::vector<std::pair<std::string, std::string>> mounted;
};

class AdapterRegistry final : public Adapters {
 public:
  // Lifetime: `fs` outlives it.
  // Errors: as mount().
  static Result<std::shared_ptr<AdapterRegistry>> make(
      FileSystem& fs,
      AdapterOptions options,
      std::string model_name,
      std::shared_ptr<const AdapterLayout> layout);

  Result<MountedAdapter> mount(const std::string& id, const std::string& path)
      override;
  Result<MountedAdapter> unmount(const std::string& id) override;
  std::vector<MountedAdapter> mounted() const override;
  std::vector<AvailableAdapter> available() const override;
  Result<std::shared_ptr<const AdapterSet>> choose(
      const std::optional<std::string>& wanted) const override;

 private:
  struct Entry {
    std::shared_ptr<const Adapter> adapter;
    std::string path;
  };

  AdapterRegistry(
      FileSystem& fs,
      AdapterOptions options,
      std::string model_name,
      std::shared_ptr<const AdapterLayout> layout)
      : fs_(fs),
        options_(std::move(options)),
        model_name_(std::move(model_name)),
        layout_(std::move(layout)) {}

  Result<MountedAdapter> mount_folder(
      const std::string& id,
      const std::string& folder);
  Result<std::string> find_in_stores(const std::string& path) const;

  FileSystem& fs_;
  const AdapterOptions options_;
  const std::string model_name_;
  const std::shared_ptr<const AdapterLayout> layout_;

  mutable Mutex mutex_; // not held while a file is read
  std::map<std::string, Entry, std::less<>> entries_ INGLE_GUARDED_BY(mutex_);
};

} // namespace ingle

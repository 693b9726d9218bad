// Adapters of the served model as the API sees them: what is mounted, and what
// a request runs with. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ingle {

class AdapterSet; // model/lora.h

struct MountedAdapter {
  std::string id;
  std::string path; // its folder
  int modules = 0; // of the model that it adds something to
  int skipped = 0; // modules that the model does not have
  int rank = 0; // the largest
  float scale = 0;
  uint64_t bytes = 0; // of memory
};

// One in a store.
struct AvailableAdapter {
  std::string id; // its folder's name
  std::string path;
  int rank = 0; // as its config says; 0: it doesn't
  float scale = 0;
  std::string base_model; // as its config says; empty: it doesn't
};

// Threads: any. Nothing here waits for the engine, or is waited for by it: a
//          generation keeps the adapters that it was started with.
class Adapters {
 public:
  virtual ~Adapters() = default;

  // Reads the adapter in a folder of a store, by its path or its name there,
  // and gives it the id. What has the id is replaced, but for the same adapter.
  // Errors: kInvalidRequest (the id can't be one; the path leads out of the
  //         stores; the adapter is not there, not whole, or does not fit;
  //         where() is the field), kIo. Nothing has changed then.
  virtual Result<MountedAdapter> mount(
      const std::string& id,
      const std::string& path) = 0;
  // Errors: kNotFound.
  virtual Result<MountedAdapter> unmount(const std::string& id) = 0;
  // By id.
  virtual std::vector<MountedAdapter> mounted() const = 0;
  // Those of the stores that are for this model, or don't say for which.
  virtual std::vector<AvailableAdapter> available() const = 0;

  // What a request runs with: "a", "a+b" or "a,b", in this order; "none": the
  // model alone, which is null, too; nothing: what holds by default.
  // Errors: kInvalidRequest (there is none of that id), where() is "adapter".
  virtual Result<std::shared_ptr<const AdapterSet>> choose(
      const std::optional<std::string>& wanted) const = 0;
};

} // namespace ingle
